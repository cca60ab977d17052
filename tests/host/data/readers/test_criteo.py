import math

import numpy as np
import pytest

from host.data.datasets import open_samples
from host.data.readers import criteo, lines
from host.data.readers.criteo import category_rows, read
from host.errors import InputError
from host.hashing import mix64
from host.model import MODELS
from host.samples import concatenate
from tests.host.data.readers.files import criteo_lines

MODEL = MODELS["kaggle"]
LARGE = MODEL.with_rows((5000,) * 26)


def plain_row(text, size):
    value = int(text, 16) if text else 1 << 32
    return int(mix64(np.array([value], np.uint64))[0]) % size


def write(tmp_path, content):
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [2000, 1 << 20])
def test_samples_are_what_the_lines_say(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines.read_chunks, "__defaults__", (size,))
    lines_of = criteo_lines(60)
    expected = [line.split("\t") for line in lines_of]
    path = write(tmp_path, "".join(line + "\n" for line in lines_of).encode())
    chunks = list(read(path, MODEL))
    assert (len(chunks) > 1) == (size == 2000)
    got = concatenate(chunks)
    assert got.labels.tolist() == [float(line[0]) for line in expected]
    assert got.dense.tolist() == [
        [float(np.float32(math.log1p(max(0, int(x or 0))))) for x in line[1:14]]
        for line in expected]
    assert (got.bag_lengths == 1).all()
    assert got.rows.reshape(-1, 26).tolist() == [
        [plain_row(text, size) for text, size in zip(line[14:], MODEL.rows)]
        for line in expected]
    raw = concatenate(read(path, None))
    assert raw.rows.reshape(-1, 26).tolist() == [
        [int(text, 16) if text else 1 << 32 for text in line[14:]] for line in expected]


def test_an_empty_category_is_a_value_of_its_own():
    rows = category_rows(np.array([0, 1 << 32, 0xFFFFFFFF]), 1 << 30)
    assert len(set(rows.tolist())) == 3 and rows[0] == 0


LINE = "\t".join(["1", *["2"] * 13, *["0a1b2c3d"] * 26])


@pytest.mark.parametrize("line, place, message", [
    (LINE.rpartition("\t")[0], f"2:{len(LINE) - 8}", "39 columns instead of 40 (label, 13"),
    (LINE + "\t", f"2:{len(LINE) + 2}", "41 columns instead of 40"),
    (" ", "2:2", "1 column instead of 40"),
    (LINE.replace("0a1b2c3d", "0a1b2c3g", 1), "2:29",
     "category 1 is not 1 to 8 hexadecimal digits: '0a1b2c3g'"),
    (LINE + "0", f"2:{len(LINE) - 7}", "category 26 is not 1 to 8 hexadecimal digits"),
    ("2" + LINE[1:], "2:1", "label must be 0 or 1, not '2'"),
    ("01" + LINE[1:], "2:1", "label must be 0 or 1, not '01'"),
    (LINE[1:], "2:1", "label must be 0 or 1, not ''"),
    ("1\t" + "x" + LINE[3:], "2:3", "integer feature 1 is not an integer: 'x'"),
    ("1\t" + "-" + LINE[3:], "2:3", "integer feature 1 is not an integer: '-'"),
    ("1\t123456789012345678" + LINE[3:], "", ""),
    ("1\t-123456789012345678" + LINE[3:], "", ""),
    ("1\t1234567890123456789" + LINE[3:], "2:3",
     "integer feature 1 is not an integer: '1234567890123456789'"),
    ("1\t12x3456789" + LINE[3:], "2:3", "integer feature 1 is not an integer: '12x3456789'"),
    ("1\t123456789a" + LINE[3:], "2:3", "integer feature 1 is not an integer: '123456789a'"),
    ("1\t" + "2a" + LINE[3:], "2:3", "integer feature 1 is not an integer: '2a'"),
    ("1\t2\t" + "1.5" + LINE[5:], "2:5", "integer feature 2 is not an integer: '1.5'"),
])
def test_bad_lines_are_refused_with_the_place(tmp_path, line, place, message):
    path = write(tmp_path, f"{LINE}\n{line}\n{LINE}\n".encode())
    if not place:  # the longest valid value
        value = float(np.float32(math.log1p(max(0, int(line.split("\t")[1])))))
        assert concatenate(read(path, MODEL)).dense[1, 0] == value
        return
    with pytest.raises(InputError) as caught:
        list(read(path, MODEL))
    assert str(caught.value).startswith(f"{path}:{place}: {message}")


def test_the_first_of_several_errors_is_named(tmp_path):
    bad = [LINE.replace("0a1b2c3d", "zz"), "3" + LINE[1:]]
    path = write(tmp_path, f"{LINE}\n{LINE[:-1]}x\n{bad[0]}\n".encode())
    with pytest.raises(InputError, match=r":2:\d+: category 26 "):
        list(read(path, MODEL))


def test_other_models_are_refused(tmp_path):
    path = write(tmp_path, LINE.encode())
    with pytest.raises(ValueError, match="must have 13 dense features and 26 tables, not 1 and 21"):
        list(read(path, MODELS["avazu"]))


def numbered(lines_of):
    """Return the rows of lines as facebookresearch/dlrm makes them: 0 for an empty category, then a
    dictionary for each column."""
    known = [{} for _ in range(26)]
    return [[numbers.setdefault(int(text or "0", 16), len(numbers))
             for numbers, text in zip(known, line.split("\t")[14:])] for line in lines_of]


def repeating(count):
    """Return lines with mostly repeated categories."""
    pool = criteo_lines(40, seed=9)
    columns = [[line.split("\t")[14 + column] for line in pool] for column in range(26)]
    rng = np.random.default_rng(4)
    return ["\t".join(["1", *["3"] * 13, *(rng.choice(column[:4 + place // 50])
                                           for column in columns)]) for place in range(count)]


@pytest.mark.parametrize("size", [2000, 1 << 20])
@pytest.mark.parametrize("cut", [None, 1, 700])
def test_categories_may_be_numbered_as_they_first_occur(tmp_path, monkeypatch, size, cut):
    monkeypatch.setattr(lines.read_chunks, "__defaults__", (size,))
    every = [*repeating(1500), *criteo_lines(60)]
    parts = [every] if cut is None else [every[:cut], every[cut:]]
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"day_{number}")
        files[-1].write_text("".join(line + "\n" for line in part))
    expected = numbered(every)
    for limit in (None, 900):
        got = concatenate(open_samples(files, "criteo-exact", LARGE, limit))
        assert got.rows.reshape(-1, 26).tolist() == expected[:limit]
    # Results do not depend on files that were read before.
    assert concatenate(open_samples(files, "criteo-exact", None)).rows.reshape(
        -1, 26).tolist() == expected
    hashed = concatenate(open_samples(files, "criteo", LARGE))
    assert (hashed.dense == concatenate(open_samples(files, "criteo-exact", None)).dense).all()


def test_a_number_beyond_the_rows_of_a_table(tmp_path):
    small = MODEL.with_rows((*MODEL.rows[:2], 2, *MODEL.rows[3:]))
    lines_of = ["\t".join(["1", *["2"] * 13, *["0"] * 2, text, *["0"] * 23])
                for text in ("", "0", "beef", "00beef", "cafe")]
    path = write(tmp_path, "".join(line + "\n" for line in lines_of).encode())
    with pytest.raises(InputError, match=r"train.txt:5:33: category 3, 'cafe', has number 2, "
                                         "beyond the 2 rows of table 2 of model kaggle$"):
        list(open_samples(path, "criteo-exact", small))


def test_more_different_categories_than_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(criteo, "MOST_VALUES", 100)
    path = write(tmp_path, "".join(line + "\n" for line in criteo_lines(9)).encode())
    with pytest.raises(InputError, match=r"train.txt:1:1: categories must have at most 100 "
                                         r"distinct values, not [0-9]+: use --index hash$"):
        list(open_samples(path, "criteo-exact", MODEL))
    assert len(concatenate(open_samples(path, "criteo", MODEL))) == 9
