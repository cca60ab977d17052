import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from host.data.readers import npz
from host.data.readers.npz import model_shape, read
from host.errors import InputError
from host.model import Model
from host.samples import concatenate
from tests.host.data.readers.files import npz_arrays, npz_bytes, write

MODEL = Model(tuple(npz_arrays(1, tables=4)["counts"].tolist()), 16, 3, (16,), (1,))


def arrays(count=100):
    return npz_arrays(count, dense=3, tables=4)


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "stored"])
@pytest.mark.parametrize("kind", ["float64", "int32", ">i8", "uint16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [7, 100, 1000])
def test_samples_are_what_the_arrays_say(tmp_path, monkeypatch, compressed, kind, order, rows):
    monkeypatch.setattr(npz, "CHUNK_ROWS", rows)
    expected = arrays()
    expected["X_cat"] = expected["X_cat"].astype(kind, order=order)
    expected["X_int"] = np.asarray(expected["X_int"], order=order)
    path = write(tmp_path / "processed.npz", npz_bytes(expected, compressed))
    chunks = list(read(path, MODEL))
    assert [len(chunk) for chunk in chunks][:-1] == [rows] * (100 // rows - (100 % rows == 0))
    got = concatenate(chunks)
    assert got.labels.tolist() == expected["y"].tolist()
    assert got.rows.reshape(-1, 4).tolist() == expected["X_cat"].astype(int).tolist()
    dense = np.log1p(np.maximum(expected["X_int"], 0).astype(np.float64)).astype(np.float32)
    assert (got.dense == dense).all() and got.dense.flags.c_contiguous
    assert (got.bag_lengths == 1).all()
    assert model_shape(path) == (3, MODEL.rows)


def test_a_file_of_one_day_has_no_counts(tmp_path):
    expected = arrays()
    del expected["counts"]
    path = write(tmp_path / "day.npz", npz_bytes(expected))
    assert concatenate(read(path, MODEL)).rows.tolist() == concatenate(
        read(path, None)).rows.tolist()
    small = replace(MODEL, rows=(1, *MODEL.rows[1:]))
    with pytest.raises(InputError, match=r"day.npz: X_cat\[\d+, 0\]: \d+.0 is beyond the 1 rows of "
                                         r"the model of table 0"):
        list(read(path, small))
    with pytest.raises(ValueError, match="a model for this data set must have 3 dense features and "
                                         "4 tables, not 2 and 4"):
        list(read(path, replace(MODEL, dense=2)))


@pytest.mark.parametrize("method, message", [
    (zipfile.ZIP_BZIP2,
     "X_int: the member must be stored or deflated, not compressed by method 12"),
])
def test_other_packings_are_refused(tmp_path, method, message):
    path = tmp_path / "packed.npz"
    with zipfile.ZipFile(path, "w", method) as file, file.open("X_int.npy", "w") as member:
        np.lib.format.write_array(member, np.zeros((3, 2), int))
    with pytest.raises(InputError, match=message):
        list(read(path, MODEL))


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "stored"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_never_whole_in_memory(tmp_path, compressed, order):
    count, tables = 80_000, 26
    rng = np.random.default_rng(1)
    whole = {"X_cat": np.asarray(rng.integers(0, 9, (count, tables)).astype(float), order=order),
             "X_int": np.zeros((count, 13)), "y": np.zeros(count), "counts": np.full(tables, 9)}
    path = tmp_path / "large.npz"
    (np.savez_compressed if compressed else np.savez)(path, **whole)
    size = sum(array.nbytes for array in whole.values())
    del whole
    tracemalloc.start()
    assert sum(map(len, read(path, None))) == count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size // 2
