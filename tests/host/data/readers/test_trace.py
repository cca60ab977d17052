import random

import pytest

from host.data.readers import lines, trace
from host.data.readers.trace import read, scan_rows
from host.errors import InputError
from host.model import Model
from host.samples import concatenate
from tests.host.test_samples import bags

MODEL = Model((10, (1 << 36) - 1, 5), 16, 2, (16,), (1,))


def write(tmp_path, text):
    path = tmp_path / "keys.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize("size", [500, 1 << 20])
def test_bags_keep_the_order_of_the_line(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines.read_chunks, "__defaults__", (size,))
    rng = random.Random(4)
    samples = [[(t, rng.randrange(MODEL.rows[t])) for t in rng.choices(range(3), k=k)]
               for k in [rng.choice([0, 1, 3, 20]) for _ in range(100)]]
    path = write(tmp_path, "".join(
        " " * rng.randrange(2) + rng.choice([" ", "  ", "\t"]).join(f"{t}:{r}" for t, r in keys)
        + " " * rng.randrange(2) + "\n" for keys in samples))
    got = concatenate(read(path, MODEL))
    assert bags(got) == [[[key for key in keys if key[0] == t] for t in range(3)]
                         for keys in samples]
    assert got.dense.shape == (100, 2) and not got.dense.any() and not got.labels.any()
    assert scan_rows(path) == tuple(
        1 + max(row for keys in samples for t, row in keys if t == table) for table in range(3))


def test_chunks_of_many_tables_are_cut(tmp_path, monkeypatch):
    path = write(tmp_path, "0:1 2:3\n\n1:5 1:4\n2:0\n\n")
    whole = concatenate(read(path, MODEL))
    monkeypatch.setattr(trace, "_CHUNK_BAGS", 7)  # two samples of three tables
    chunks = list(read(path, MODEL))
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert bags(concatenate(chunks)) == bags(whole)


def test_lines_without_keys_are_samples_too(tmp_path):
    got = concatenate(read(write(tmp_path, "\n 1:5 1:5\n\n\n"), MODEL))
    assert bags(got) == [[[], [], []], [[], [(1, 5), (1, 5)], []], [[], [], []], [[], [], []]]
    assert bags(concatenate(read(write(tmp_path, "\n\n"), MODEL))) == [[[], [], []]] * 2


@pytest.mark.parametrize("line, column, message", [
    ("0:1 0:10", 5, "row of 0:10 is beyond the 10 rows of its table"),
    ("0:1 3:0", 5, "table of 3:0 is beyond the 3 tables"),
    ("0:1 7", 5, "a key must be table:row, not '7'"),
    ("0:1 1:2:3", 5, "a key must be table:row, not '1:2:3'"),
    ("0:1 :3", 5, "a key must be table:row in decimal, not ':3'"),
    ("0:1  1:", 6, "a key must be table:row in decimal, not '1:'"),
    ("0:-1", 1, "a key must be table:row in decimal, not '0:-1'"),
    ("0:1 1:0x5", 5, "a key must be table:row in decimal, not '1:0x5'"),
    ("1:9999999999999999999999", 1, "a key must be table:row in decimal"),
])
def test_bad_keys_are_refused_with_the_place(tmp_path, line, column, message):
    path = write(tmp_path, f"0:0\n{line}\n1:1\n")
    with pytest.raises(InputError) as caught:
        list(read(path, MODEL))
    assert str(caught.value).startswith(f"{path}:2:{column}: {message}")


def test_scan_refuses_what_no_record_can_hold(tmp_path):
    with pytest.raises(InputError, match="table of 4096:0 is beyond the 4096 tables"):
        scan_rows(write(tmp_path, "4096:0\n"))
    with pytest.raises(InputError, match="is beyond the 68719476735 rows"):
        scan_rows(write(tmp_path, f"2:{(1 << 36) - 1}\n"))
    assert scan_rows(write(tmp_path, "2:7\n")) == (1, 1, 8)
