from dataclasses import dataclass, field

import pytest

from host.errors import InputError
from host.toml.schema import read_toml


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


@pytest.mark.parametrize("text, message", [
    ("rows = [1]\nrate = 1.0\nrat = 2\n", "no such field: rat (fields: rows, rate"),
    ("rows = [1, true]\nrate = 1\n", "rows[1] must be an integer, not True"),
    ("rows = 3\nrate = 1\n", "rows must be a list, not 3"),
    ("rate = 1\nrows = [1]\n  fast = 1\n", "fast must be true or false, not 1"),
    ("# note\nrows = [1]\n", "field rate is missing"),
    ("rows = [1]\nrate = -2\n", "rate must be at least 0, not -2.0"),
    ("rows = [1\nrate = -2\n", "2:1: Unclosed array"),
    (b"rows = [1]\nrate = 1\nname = \"\xff\"\n", "3:9: not UTF-8 text"),
])
def test_complaints_are_one_line(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    between = ":" if message[0].isdigit() else ": "
    assert str(caught.value).startswith(f"{tmp_path}/shape.toml{between}{message}")
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Link:
    wait_us: float
    size_bytes: int = 64
    rate_gbit_s: float = 1.0

    def __post_init__(self):
        if self.wait_us < 0:
            raise ValueError(f"wait_us must be at least 0, not {self.wait_us!r}")


@dataclass(frozen=True)
class Item:
    rows: int
    bag: int | tuple[int, int] = 1


@dataclass(frozen=True)
class Whole:
    link: Link
    items: tuple[Item, ...] = ()
    set: dict[str, int | bool] = field(default_factory=dict)

    def __post_init__(self):
        for index, item in enumerate(self.items):
            if item.rows > 100:
                raise ValueError(f"items[{index}].rows must be at most 100, not {item.rows!r}")


def whole(tmp_path, text, **options):
    path = tmp_path / "whole.toml"
    path.write_text(text)
    return read_toml(path, Whole, **options)


def test_tables_in_tables(tmp_path):
    text = """
set.deep = true
[link]
wait = "1_500 ns"
size = "2 KiB"
rate = "12.5 GB/s"
[[items]]
rows = 1
[[items]] # another
"rows" = 2
bag = [0, 3]
"""
    with pytest.raises(InputError, match=r'toml: link: wait must be a string .*, not .1_500 ns'):
        whole(tmp_path, text)
    assert whole(tmp_path, text.replace("1_5", "15")) == Whole(
        Link(1500 / 1000, 2048, 100.0), (Item(1), Item(2, (0, 3))), {"deep": True})
    same = 'link = {wait_us = 1.5, size_bytes = 2048, rate = "0.1 Tb/s"}'
    assert whole(tmp_path, same).link == whole(tmp_path, text.replace("1_5", "15")).link


@pytest.mark.parametrize("text, message", [
    ("[link]\nwait = 5\n", 'link: wait must be a string with a number and a unit, such as '
     '"1.2 us" (units: ns, us, ms, s), not 5'),
    ("[link]\nwait = '5'\n", "link: wait must be a string with a number and a unit"),
    ("[link]\nwait = '5 GiB'\n", "link: wait must have one of the units ns, us, ms, s, "
     "not 'GiB'"),
    ("[link]\nwait = '1 us'\n size = '0.3 B'\n", "link: size must be a whole number of bytes, "
     "not '0.3 B'"),
    ("[link]\nwait = '-1 us'\n", "link: wait_us must be at least 0, not -1.0"),
    ("[link]\nwait = '1 us'\nwait_us = 1\n", "link: wait_us and wait must not both be given"),
    ("[link]\nsize = '1 B'\n", "link: field wait is missing"),
    ("[link]\nwait = '1 us'\n[link.more]\n", "link: no such field: more (fields: wait, size,"),
    ("link = {wait = '1 us', depth = 2}\n", "link: no such field: depth"),
    ("link = 7\n", "link must be a table, not 7"),
    ("items = []\n", "field link is missing"),
    ("[link]\nwait = '1 us'\n[[items]]\nrows = 1\n[[items]]\n  rows = 'x'\n",
     "items[1]: rows must be an integer, not 'x'"),
    ("[link]\nwait = '1 us'\n[[items]]\nrows = 1\n[[items]]\n", "items[1]: field rows is missing"),
    ("[link]\nwait = '1 us'\n[[items]]\nrows = 1\n[[items]]\nrows = 101\n",
     "items[1].rows must be at most 100, not 101"),
    ("items = [{rows = 1},\n {rows = 1, bag = [1, 'two']}]\nlink.wait = '1 us'\n",
     "items[1]: bag[1] must be an integer, not 'two'"),
    ("items = [{rows = 1, bag = [1, 2, 3]}]\nlink.wait = '1 us'\n",
     "items[0]: bag must have 2 items, not [1, 2, 3]"),
    ("items = [{rows = 1, bag = 1.5}]\nlink.wait = '1 us'\n",
     "items[0]: bag must be an integer or a list, not 1.5"),
    ("[link]\nwait_us = inf\n", "link: wait_us must be a number of at most 1e+100, not inf"),
    ("[link]\nwait_us = 1.1e9\n", "link: wait_us must be at most 1e+09, not 1100000000.0"),
    ("[link]\nwait_us = 1\nrate_gbit_s = 9e-7\n",
     "link: rate_gbit_s must be at least 1e-06, not 9e-07"),
    ("[link]\nwait_us = 1\nrate = '1e-9 Mb/s'\n",
     "link: rate_gbit_s must be at least 1e-06, not '1e-9 Mb/s'"),
    ("[link]\nwait = '2e3 s'\n", "link: wait_us must be at most 1e+09, not '2e3 s'"),
    ("[link]\nwait_us = nan\n", "link: wait_us must be a number of at most 1e+100, not nan"),
    (f"[link]\nwait_us = 1{'0' * 400}\n", "link: wait_us must be a number of at most 1e+100, "
     "not 100000000000000000000000000000...000000000000000"),
    ("[link]\nwait = '1e999999999 us'\n", "link: wait must be a string with a number and a unit"),
    ("link = [" + "1, " * 1000 + "]\n", "link must be a table, not [1, 1, 1, 1, 1, 1"),
    ("[link]\nwait_us = 0x" + "f" * 9999 + "\n",
     "link: wait_us must be a number of at most 1e+100, not int of very many digits"),
    ("[link]\nwait = '1 us'\n[set]\nédeep = 1\n", "4:1: Invalid"),
    ("[link]\nwait = '1 us'\n[set]\n'é' = 2\ndeep = '1'\n",
     "set.deep must be an integer or true or false, not '1'"),
])
def test_keys_in_tables(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        whole(tmp_path, text)
    found = str(caught.value)
    between = ":" if message[0].isdigit() else ": "
    assert found.startswith(f"{tmp_path}/whole.toml{between}{message}") and "\n" not in found


def test_names_and_checks(tmp_path):
    def named(name, kind):
        if name != "known":
            raise ValueError(f"link must be known, not {name!r}")
        return Link(7.0)

    def check(result):
        if "colour" in result.set:
            raise ValueError("no such field: colour (fields: deep)")

    assert whole(tmp_path, "link = 'known'\n", named=named).link == Link(7.0)
    with pytest.raises(InputError, match=r"toml: link: link must be known, not 'other'"):
        whole(tmp_path, "\nlink = 'other'\n", named=named)
    with pytest.raises(InputError, match=r"toml: set: no such field: colour"):
        whole(tmp_path, "link = 'known'\n[set]\ncolour = 1\n", named=named, check=check)
    with pytest.raises(InputError, match=r"toml: link must be a name or a table, not 3"):
        whole(tmp_path, "link = 3\n", named=named)


def test_too_deep(tmp_path):
    with pytest.raises(InputError, match=r"whole.toml: tables or lists are nested too deeply$"):
        whole(tmp_path, "x = " + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(InputError, match=r"whole.toml: Exceeds the limit"):
        whole(tmp_path, "x = " + "1" * 9999)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none.toml: No such file or directory$"):
        read_toml(tmp_path / "none.toml", Shape)
