import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from host.data.datasets import default_model, open_samples
from host.data.readers import npz
from host.data.readers.npz import counts_file, model_shape, read
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


def day(tmp_path, name="train_day_3_reordered.npz", counts="train_fea_count.npz", changed=None):
    """Write a file of one day as facebookresearch/dlrm does, and the counts beside it."""
    expected = arrays()
    beside = expected.pop("counts")
    if counts is not None:
        write(tmp_path / counts, npz_bytes({"counts": beside if changed is None else changed}))
    return write(tmp_path / name, npz_bytes(expected)), beside


@pytest.mark.parametrize("name, counts", [
    ("train_day_3_reordered.npz", "train_fea_count.npz"),
    ("train_day_11_processed.npz", "train_fea_count.npz"),
    ("day_0_reordered.npz", "day_fea_count.npz"),
])
def test_counts_of_a_day_are_in_the_file_beside_it(tmp_path, name, counts):
    path, beside = day(tmp_path, name, counts)
    assert counts_file(path) == tmp_path / counts
    model = default_model(path, "dlrm-npz")
    assert model.rows == tuple(beside.tolist()) and model.dense == 3
    assert concatenate(open_samples(path, "dlrm-npz", model)).rows.tolist() == concatenate(
        read(path, None)).rows.tolist()


def test_counts_of_a_file_that_has_them_are_its_own(tmp_path):
    write(tmp_path / "train_fea_count.npz", b"none")
    path = write(tmp_path / "train_day_0_processed.npz", npz_bytes(arrays()))
    assert model_shape(path)[1] == MODEL.rows
    assert counts_file(tmp_path / "kaggleAdDisplayChallenge_processed.npz") is None


def test_a_day_without_counts_beside_it(tmp_path):
    path, _ = day(tmp_path, counts=None)
    with pytest.raises(InputError, match=f"^{path}: counts: the array is missing, and so is "
                                         f"{tmp_path / 'train_fea_count.npz'}; name a model$"):
        default_model(path, "dlrm-npz")


@pytest.mark.parametrize("changed, message", [
    (np.ones(5, np.int32),
     r"train_fea_count.npz: counts: must have shape \(4,\), one for each column of X_cat, "
     r"not \(5,\)$"),
    (np.array([9, 0, 9, 9]),
     r"train_fea_count.npz: counts\[1\]: must be between 1 and 68719476735, not 0$"),
    (np.array([999, 1, 999, 999]),
     r"train_day_3_reordered.npz: X_cat\[\d+, 1\]: \d+.0 is beyond the 1 counts of table 1 in "
     r".*/train_fea_count.npz$"),
])
def test_counts_beside_a_day_that_do_not_fit_it(tmp_path, changed, message):
    path, _ = day(tmp_path, changed=changed)
    with pytest.raises(InputError, match=message):
        list(read(path, None))


def test_a_file_beside_a_day_that_is_no_archive(tmp_path):
    path, _ = day(tmp_path)
    for content, message in ((b"none", "not a complete zip archive"),
                             (npz_bytes({"total": np.ones(2)}), "counts: the array is missing")):
        write(tmp_path / "train_fea_count.npz", content)
        with pytest.raises(InputError, match=f"train_fea_count.npz: {message}"):
            model_shape(path)


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
