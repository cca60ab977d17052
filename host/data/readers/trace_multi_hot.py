"""Reader of key traces stored as an ``.npz`` archive with an array of keys per table.

MLPerf's DLRM uses such files, ``day_N_sparse_multi_hot.npz``, which
``materialize_synthetic_multihot_dataset.py`` of mlcommons/training writes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from host.data.readers.arrays import ArrayFile, array_error, open_npz
from host.data.readers.shapes import table_sizes
from host.errors import InputError
from host.model import Model
from host.samples import Samples
from rtl.formats import TABLE_BITS

__all__ = ["read", "scan_rows"]

_CHUNK_KEYS = 1 << 18
_NAMES = frozenset(map(str, range(1 << TABLE_BITS)))


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of an archive, a few thousand per chunk.

    The arrays are named ``0``, ``1``, ... after the tables. Each has shape ``[samples, keys]`` and
    any integer type; its elements are the rows that the samples look up. Dense features and labels
    are zeros.

    Raises
    ------
    InputError
        The archive is incomplete, an array is missing or has a wrong type or shape, or an element
        is negative or beyond the rows of its table. Names the array and the index.
    """
    with _opened(Path(path)) as arrays:
        if model is not None and model.tables != len(arrays):
            raise array_error(path, "arrays", f"must be {model.tables}, the tables of the model, "
                                              f"not {len(arrays)}")
        hot = np.array([array.shape[1] for array in arrays], np.int32)
        each = np.repeat(np.arange(len(arrays), dtype=np.int32), hot)
        for parts in _checked(arrays, table_sizes(model, len(arrays))):
            n = len(parts[0])
            yield Samples(np.zeros((n, model.dense if model else 1), np.float32),
                          np.zeros(n, np.float32), np.tile(hot, (n, 1)), np.tile(each, n),
                          np.concatenate(parts, axis=1).reshape(-1))


def scan_rows(path: str | Path) -> tuple[int, ...]:
    """Return the maximum row of each table, plus 1; 1 for a table without keys."""
    with _opened(Path(path)) as arrays:
        largest = np.zeros(len(arrays), np.int64)
        for parts in _checked(arrays, table_sizes(None, len(arrays))):
            np.maximum(largest, [part.max(initial=0) for part in parts], out=largest)
    return tuple(int(row) + 1 for row in largest)


@contextmanager
def _opened(path: Path) -> Iterator[list[ArrayFile]]:
    """Yield the arrays of an archive in the order of the tables."""
    try:
        with path.open("rb") as file:
            found = open_npz(path, file, _NAMES)
            names = list(map(str, range(len(found))))
            for name in names or ["0"]:
                if name not in found:
                    raise array_error(path, name, "the array is missing; there must be an array "
                                                  "for each table, named 0, 1, ...")
            arrays = [found[name] for name in names]
            for array in arrays:
                if array.dtype.kind not in "iu":
                    raise array.error(f"dtype must be of integers, not {array.dtype}")
                if len(array.shape) != 2:
                    raise array.error(f"shape must be (samples, keys), not {array.shape}")
                if array.shape[0] != arrays[0].shape[0]:
                    raise array.error(f"must have {arrays[0].shape[0]} rows, as 0 has, not shape "
                                      f"{array.shape}")
            if not arrays[0].shape[0]:
                raise arrays[0].error("there are no samples")
            yield arrays
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def _checked(arrays: list[ArrayFile], sizes: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield the rows of each table, int64 ``[samples, keys]``, checked to be below ``sizes``."""
    count = max(1, _CHUNK_KEYS // max(1, sum(array.shape[1] for array in arrays)))
    first = 0
    for parts in zip(*(array.chunks(count) for array in arrays), strict=True):
        for table, (array, rows) in enumerate(zip(arrays, parts)):
            array.check_rows(rows, sizes[table:table + 1], first, table)
        yield [rows.astype(np.int64) for rows in parts]
        first += len(parts[0])
