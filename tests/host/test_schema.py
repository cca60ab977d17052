from dataclasses import dataclass

import pytest

from host.errors import InputError
from host.schema import read_toml


@dataclass(frozen=True)
class Shape:
    rows: tuple[int, ...]
    rate: float
    name: str = "plain"
    fast: bool = False

    def __post_init__(self):
        if self.rate < 0:
            raise ValueError(f"rate must be at least 0, not {self.rate!r}")


def read(tmp_path, text):
    path = tmp_path / "shape.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_toml(path, Shape)


def test_reads_all_kinds(tmp_path):
    assert read(tmp_path, 'rows = [1, 2]\nrate = 3\nname = "x"\nfast = true\n') == Shape(
        (1, 2), 3.0, "x", True)
    assert read(tmp_path, "rows = []\nrate = 0.5\n") == Shape((), 0.5)


@pytest.mark.parametrize("text, place, message", [
    ("rows = [1]\nrate = 1.0\nrat = 2\n", "3:1", "no such field: rat (fields: rows, rate"),
    ("rows = [1, true]\nrate = 1\n", "1:1", "rows[1] must be an integer, not True"),
    ("rows = 3\nrate = 1\n", "1:1", "rows must be a list, not 3"),
    ("rate = 1\nrows = [1]\n  fast = 1\n", "3:3", "fast must be true or false, not 1"),
    ("# note\nrows = [1]\n", "3:1", "field rate is missing"),
    ("rows = [1]\nrate = -2\n", "2:1", "rate must be at least 0, not -2.0"),
    ("rows = [1\nrate = -2\n", "2:1", "Unclosed array"),
    (b"rows = [1]\nrate = 1\nname = \"\xff\"\n", "3:9", "not UTF-8 text"),
])
def test_complaints_are_one_line_with_the_place(tmp_path, text, place, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/shape.toml:{place}: {message}")
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none.toml: No such file or directory$"):
        read_toml(tmp_path / "none.toml", Shape)
