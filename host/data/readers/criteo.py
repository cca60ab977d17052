"""Reader of Criteo's click logs: Kaggle's ``train.txt`` and the Terabyte days, plain or gzip."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from host.data.readers.fields import hexadecimals, integers, labels, split
from host.data.readers.lines import read_chunks
from host.data.readers.shapes import check_model
from host.hashing import mix64
from host.model import Model
from host.samples import Samples

__all__ = ["CATEGORIES", "EMPTY_CATEGORY", "INTEGERS", "category_rows", "read"]

INTEGERS, CATEGORIES = 13, 26
EMPTY_CATEGORY = 1 << 32
"""The hash input of an empty category: the first value that no 32-bit category has."""

_LAYOUT = "label, 13 integers, 26 hexadecimal categories, separated by tabs"


def category_rows(values: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
    """Return the row of each category: MurmurHash3's 64-bit finaliser modulo the rows.

    ``values`` are 32-bit values or `EMPTY_CATEGORY`; see :func:`host.hashing.mix64`.
    """
    return (mix64(values.astype(np.uint64)) % np.asarray(rows, np.uint64)).astype(np.int64)


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of a Criteo file, a few thousand per chunk.

    A line has a label (0 or 1), 13 integers and 26 hexadecimal categories of up to 8 digits,
    separated by tabs; integers and categories may be empty; there is no header. A dense feature is
    log(1 + max(x, 0)), computed in float64 and rounded once, or 0 if missing. A category, even an
    empty one, becomes its `category_rows`; without a model it keeps its own value, and an empty one
    becomes `EMPTY_CATEGORY`.

    Raises
    ------
    InputError
        The line and column of a malformed field.
    ValueError
        The model does not have 13 dense features and 26 tables.
    """
    check_model("Criteo", model, INTEGERS, CATEGORIES)
    sizes = np.array(model.rows, np.uint64) if model else None
    for chunk in read_chunks(path):
        fields = split(chunk, b"\t", 1 + INTEGERS + CATEGORIES, _LAYOUT)
        label = labels(fields[:, 0], "label")
        numbers = fields[:, 1:1 + INTEGERS]
        value, good = integers(numbers)
        numbers.require(good | (numbers.lengths == 0), lambda text, at:
                        f"integer feature {at[1] + 1} is not an integer: {text!r}")
        categories = fields[:, 1 + INTEGERS:]
        category, good = hexadecimals(categories)
        empty = categories.lengths == 0
        categories.require(good | empty, lambda text, at:
                           f"category {at[1] + 1} is not 1 to 8 hexadecimal digits: {text!r}")
        dense = np.log1p(np.maximum(value, 0).astype(np.float64)).astype(np.float32)
        rows = np.where(empty, EMPTY_CATEGORY, category)
        if sizes is not None:
            rows = category_rows(rows, sizes)
        yield Samples.one_hot(dense, label, rows)
