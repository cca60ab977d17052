"""Check of a model against a reader: number of dense features and tables, and rows."""

import numpy as np

from host.model import Model
from rtl.formats import ROW_BITS

__all__ = ["MOST_ROWS", "check_model", "table_sizes"]

MOST_ROWS = (1 << ROW_BITS) - 1
"""Maximum rows of a table."""


def check_model(name: str, model: Model | None, dense: int, tables: int) -> None:
    """Raise ``ValueError`` if a model for data set ``name`` has other numbers of features or
    tables.
    """
    if model is not None and (model.dense, model.tables) != (dense, tables):
        raise ValueError(f"a model for {name} must have {dense} dense feature{'s' * (dense != 1)} "
                         f"and {tables} tables, not {model.dense} and {model.tables}")


def table_sizes(model: Model | None, tables: int) -> np.ndarray:
    """Return the rows of each table, or `MOST_ROWS` without a model: int64 ``[tables]``."""
    return np.array(model.rows if model else (MOST_ROWS,) * tables, np.int64)
