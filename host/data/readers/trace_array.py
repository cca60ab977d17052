"""Reader of key traces stored as a ``.npy`` array with one key per sample and table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from host.data.readers.arrays import ArrayFile, open_npy
from host.data.readers.shapes import table_sizes
from host.errors import InputError
from host.model import Model
from host.samples import Samples
from rtl.formats import TABLE_BITS

__all__ = ["read", "scan_rows"]

_CHUNK_KEYS = 1 << 18


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of a trace, a few thousand per chunk.

    The array has shape ``[samples, tables]`` and any integer type; an element is the row that the
    sample looks up in that table. It has as many columns as the model has tables. Dense features
    and labels are zeros.

    Raises
    ------
    InputError
        The file is cut off, the array has a wrong type or shape, or an element is negative or
        beyond the rows of its table. Names the index.
    """
    with _opened(Path(path)) as array:
        tables = array.shape[1]
        if model is not None and model.tables != tables:
            raise array.error(f"must have {model.tables} columns, the tables of the model, "
                              f"not shape {array.shape}")
        for rows in _checked(array, table_sizes(model, tables)):
            dense = np.zeros((len(rows), model.dense if model else 1), np.float32)
            yield Samples.one_hot(dense, np.zeros(len(rows)), rows)


def scan_rows(path: str | Path) -> tuple[int, ...]:
    """Return the maximum row of each table, plus 1."""
    with _opened(Path(path)) as array:
        largest = np.zeros(array.shape[1], np.int64)
        for rows in _checked(array, table_sizes(None, array.shape[1])):
            np.maximum(largest, rows.max(axis=0), out=largest)
    return tuple(int(row) + 1 for row in largest)


@contextmanager
def _opened(path: Path) -> Iterator[ArrayFile]:
    """Yield the array of a file."""
    try:
        with path.open("rb") as file:
            array = open_npy(path, file)
            if array.dtype.kind not in "iu":
                raise array.error(f"dtype must be of integers, not {array.dtype}")
            if len(array.shape) != 2 or not 1 <= array.shape[1] <= 1 << TABLE_BITS:
                raise array.error(f"shape must be (samples, 1 to {1 << TABLE_BITS} tables), "
                                  f"not {array.shape}")
            if array.shape[0] == 0:
                raise array.error("there are no samples")
            yield array
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def _checked(array: ArrayFile, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows as int64 ``[samples, tables]``, checked to be below ``sizes``."""
    first = 0
    for rows in array.chunks(max(1, _CHUNK_KEYS // len(sizes))):
        array.check_rows(rows, sizes, first)
        yield rows.astype(np.int64)
        first += len(rows)
