"""The rows of a model's embedding tables in the form that C++ takes."""

from functools import lru_cache

from host.dlrm.rows import row_constants
from host.model import Model
from sim.native.structures import Rows

__all__ = ["rows_of"]


@lru_cache(maxsize=16)
def _rows_of(sizes: tuple[int, ...], dimension: int, seed: int) -> Rows:
    constants = row_constants(sizes, dimension, seed)
    rows = Rows(*(array.ctypes.data for array in constants), len(sizes), dimension)
    rows.constants = constants  # keeps the arrays alive while C++ uses their addresses
    return rows


def rows_of(model: Model, seed: int) -> Rows:
    """Return the C++ ``Rows`` of a model's tables."""
    return _rows_of(model.rows, model.dimension, seed)
