"""The same samples in other notations: read to the same bits, or rejected with the place."""

import csv
import gzip
import io
import random
from collections import Counter

import numpy as np
import pytest

from host.data.datasets import default_model, known_format, open_samples
from host.errors import InputError
from host.samples import Samples, concatenate
from tests.host.data.readers.files import (
    avazu_lines,
    criteo_lines,
    npy_bytes,
    npz_arrays,
    npz_bytes,
    write,
)

MOVIELENS = ["userId,movieId,rating,timestamp", "1,31,2.5,1260759144", "7,1029,3.0,1260759179",
             "2,10,4.0,835355493", "2,17,5,835355681"]
TABLES = {"criteo": ("\t", [line.split("\t") for line in criteo_lines(12)]),
          "avazu": (",", [line.split(",") for line in avazu_lines(12)]),
          "movielens": (",", [line.split(",") for line in MOVIELENS])}


def samples_in(path, format: str | None = None) -> Samples:
    format = known_format(path, format)
    return concatenate(open_samples(path, format, default_model(path, format)))


def assert_same(got: Samples, expected: Samples) -> None:
    for name in ("dense", "labels", "bag_lengths", "tables", "rows"):
        assert getattr(got, name).tobytes() == getattr(expected, name).tobytes(), name


def text_of(rows: list[list[str]], separator: str, quoting=csv.QUOTE_MINIMAL, end="\n") -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=end).writerows(rows)
    return file.getvalue().encode()


def written(format: str, rng: random.Random) -> bytes:
    """Return the samples of a format in one of its notations."""
    separator, rows = TABLES[format]
    if format != "criteo":
        order = list(range(len(rows[0])))
        if rng.random() < 0.5:
            rng.shuffle(order)
        rows = [[row[place] for place in order] for row in rows]
        if rng.random() < 0.5:  # an index, as pandas writes it, or an unknown column
            at, name = rng.randrange(len(order) + 1), rng.choice(["", "more"])
            rows = [[*row[:at], name if number == 0 else rng.choice(["", str(number), "a,b"]),
                     *row[at:]] for number, row in enumerate(rows)]
    end = rng.choice(["\n", "\r\n"])
    content = text_of(rows, separator, rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL,
                                                   csv.QUOTE_NONNUMERIC]), end)
    lines = content.splitlines(keepends=True)
    for _ in range(rng.choice([0, 0, 1, 3])):
        lines.insert(rng.randrange(len(lines) + 1), end.encode())
    content = b"".join(lines)
    if rng.random() < 0.5:
        content = content.rstrip(b"\r\n")
    if rng.random() < 0.3:
        content = b"\xef\xbb\xbf" + content
    return gzip.compress(content, mtime=0) if rng.random() < 0.3 else content


@pytest.mark.parametrize("format", TABLES)
def test_forms_of_a_table_are_the_same_samples(tmp_path, format):
    separator, rows = TABLES[format]
    path = write(tmp_path / "plain", text_of(rows, separator))
    expected = samples_in(path, format)
    assert len(expected) == len(rows) - (format != "criteo")
    rng = random.Random(format)
    for number in range(60):
        content = written(format, rng)
        path = write(tmp_path / f"{number}", content)
        assert known_format(path) == format
        assert_same(samples_in(path), expected)


@pytest.mark.parametrize("format", TABLES)
def test_a_form_that_is_damaged_loses_no_sample_in_silence(tmp_path, format):
    separator, rows = TABLES[format]
    count, rng, outcomes = len(rows) - (format != "criteo"), random.Random(7), Counter()
    for _ in range(150):
        content = bytearray(text_of(rows, separator, rng.choice([csv.QUOTE_ALL,
                                                                 csv.QUOTE_MINIMAL])))
        at = rng.randrange(len(content))
        change = rng.choice(['"', "\n", separator, '""', " ", "\r", "\xe9", "", "0"])
        content[at:at + rng.randrange(2)] = change.encode("latin-1")
        path = write(tmp_path / "file", bytes(content))
        try:
            assert len(samples_in(path, format)) == count
            outcomes["read"] += 1
        except InputError as error:
            assert str(error).startswith(f"{path}:") and "\n" not in str(error)
            outcomes["rejected"] += 1
    assert outcomes["rejected"] > 20 and outcomes["read"] > 5


def multi_hot(hot=(3, 1, 0, 2), count: int = 50) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {str(table): rng.integers(0, 9 + table, (count, keys)).astype(np.int32)
            for table, keys in enumerate(hot)}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("chunk", [20, 1 << 18])
def test_an_array_of_keys_for_each_table(tmp_path, monkeypatch, compressed, chunk):
    monkeypatch.setattr("host.data.readers.trace_multi_hot._CHUNK_KEYS", chunk)
    arrays = multi_hot()
    path = write(tmp_path / "day_0_sparse_multi_hot.npz", npz_bytes(arrays, compressed))
    text = "\n".join(" ".join(f"{table}:{row}" for table, array in arrays.items()
                              for row in array[number]) for number in range(50))
    assert known_format(path) == "trace"
    sizes = default_model(path, "trace").rows
    assert sizes == tuple(int(array.max(initial=0)) + 1 for array in arrays.values())
    model = default_model(path, "trace")
    assert_same(concatenate(open_samples(path, "trace", model)),
                concatenate(open_samples(write(tmp_path / "text", text), "trace", model)))


@pytest.mark.parametrize("changed, message", [
    ({"2": None}, "2: the array is missing; there must be an array for each table, named 0, 1,"),
    ({"1": np.zeros((49, 1), np.int32)}, "1: must have 50 rows, as 0 has, not shape (49, 1)"),
    ({"1": np.zeros(50, np.int32)}, "1: shape must be (samples, keys), not (50,)"),
    ({"1": np.zeros((50, 1))}, "1: dtype must be of integers, not float64"),
    ({"3": np.full((50, 2), -1)}, "3[0, 0]: -1 is negative"),
    ({"0": np.full((50, 3), 1 << 40)}, "0[0, 0]: 1099511627776 is beyond the 68719476735 rows of"),
    ({str(table): np.zeros((0, 1), np.int32) for table in range(4)}, "0: there are no samples"),
])
def test_wrong_arrays_are_named(tmp_path, changed, message):
    arrays = {name: array for name, array in (multi_hot() | changed).items() if array is not None}
    path = write(tmp_path / "file.npz", npz_bytes(arrays))
    with pytest.raises(InputError) as caught:
        samples_in(path, "trace")
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_folder_of_days_with_what_dlrm_writes_beside_them(tmp_path):
    whole, counts = npz_arrays(30), None
    for day in range(3):
        part = {name: array[10 * day:10 * day + 10] for name, array in whole.items()
                if name != "counts"}
        write(tmp_path / f"train_day_{day}_reordered.npz", npz_bytes(part))
        write(tmp_path / f"train_fea_dict_{day}.npz", npz_bytes({"unique": np.arange(3)}))
    counts = {"counts": whole["counts"]}
    write(tmp_path / "train_fea_count.npz", npz_bytes(counts))
    write(tmp_path / "train_day_count.npz", npz_bytes({"total_per_file": np.full(3, 10)}))
    assert known_format(tmp_path) == "dlrm-npz"
    plain = samples_in(write(tmp_path.parent / "whole.npz", npz_bytes(whole)))
    assert_same(samples_in(tmp_path), plain)
    write(tmp_path / "train_day_1_processed.npz", npz_bytes(part))
    with pytest.raises(InputError, match=r"train_day_1_processed\.npz and "
                       r"train_day_1_reordered\.npz have the same samples; name the files instead"):
        samples_in(tmp_path)


def test_a_trace_of_blank_lines_before_keys_and_an_array(tmp_path):
    """A blank line of a trace is a sample."""
    path = write(tmp_path / "trace", b"\n\r\n0:1 1:2\r\n\n")
    assert known_format(path) == "trace"
    assert samples_in(path).bag_lengths.tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]
    rows = np.arange(12).reshape(4, 3)
    assert len(samples_in(write(tmp_path / "array", npy_bytes(rows)))) == 4
