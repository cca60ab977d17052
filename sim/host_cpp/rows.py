"""The rows of a model's embedding tables in the form for C++."""

from functools import lru_cache

import numpy as np

from host.dlrm.rows import row_constants
from host.model import Model
from host.wire.rows import GivenRows
from sim.host_cpp.structures import Rows

__all__ = ["given_rows", "rows_of"]


@lru_cache(maxsize=16)
def _rows_of(sizes: tuple[int, ...], dimensions: tuple[int, ...], width: int, seed: int,
             slices: tuple[tuple[int, int], ...], first_rows: tuple[int, ...]) -> Rows:
    constants = row_constants(sizes, dimensions, seed, slices, first_rows)
    rows = Rows(**{name: array.ctypes.data for name, array in constants._asdict().items()},
                tables=len(sizes), dimension=width)
    rows.constants = constants  # keeps the arrays alive while C++ uses their addresses
    return rows


def rows_of(model: Model, seed: int) -> Rows:
    """Return the C++ ``Rows`` of a model's tables."""
    return _rows_of(model.rows, model.table_dimensions, model.width, seed, model.slices,
                    model.first_rows)


def given_rows(rows: GivenRows, dimension: int) -> Rows:
    """Return the C++ ``Rows`` of given tables. The tables must not move in memory.

    ``dimension``: of vectors, at least the dimension of every table.
    """
    tables = rows.tables
    for table in tables:
        assert table.dtype == np.float32 and table.shape[1] <= dimension
    sizes, lengths = (np.array([table.shape[axis] for table in tables], np.int64)
                      for axis in (0, 1))
    strides = np.array([table.strides for table in tables], np.int64) // np.float32().itemsize
    places = np.array([table.ctypes.data for table in tables], np.uintp)
    made = Rows(sizes=sizes.ctypes.data, tables=len(tables), dimension=dimension,
                given=places.ctypes.data, lengths=lengths.ctypes.data, strides=strides.ctypes.data)
    made.constants = sizes, lengths, strides, places, tables  # C++ uses their addresses
    return made
