import numpy as np
import pytest

from host.data.readers import trace, trace_array
from host.errors import InputError
from host.model import Model
from host.samples import concatenate
from tests.host.data.readers.files import npy_bytes, write

MODEL = Model((10, (1 << 36) - 1, 5), 16, 2, (16,), (1,))


@pytest.mark.parametrize("kind", ["int64", "uint8", ">i4", "uint64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("keys", [1, 20, 1 << 18])
def test_an_element_is_the_row_in_the_table_of_its_column(tmp_path, monkeypatch, kind, order, keys):
    monkeypatch.setattr(trace_array, "_CHUNK_KEYS", keys)
    rows = np.random.default_rng(1).integers(0, (10, 200, 5), (50, 3))
    path = write(tmp_path / "keys", npy_bytes(rows.astype(kind, order=order)))
    got = concatenate(trace.read(path, MODEL))
    assert got.rows.reshape(-1, 3).tolist() == rows.tolist()
    assert (got.bag_lengths == 1).all()
    assert got.dense.shape == (50, 2) and not got.dense.any() and not got.labels.any()
    assert trace.scan_rows(path) == tuple((rows.max(axis=0) + 1).tolist())
    assert concatenate(trace.read(path, None)).rows.tolist() == got.rows.tolist()


def test_what_the_model_does_not_hold_is_refused(tmp_path):
    path = write(tmp_path / "keys", npy_bytes(np.array([[1, 2, 3], [9, 9, 9]])))
    with pytest.raises(InputError, match=r"keys: array\[1, 2\]: 9 is beyond the 5 rows of table 2"):
        list(trace.read(path, MODEL))
    with pytest.raises(InputError, match=r"keys: array: must have 2 columns, the tables of the "
                                         r"model, not shape \(2, 3\)"):
        list(trace.read(path, Model((10, 10), 16, 1, (16,), (1,))))
