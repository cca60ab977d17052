"""Reader of Criteo's click logs: Kaggle's ``train.txt`` and the Terabyte days, plain or gzip."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from host.data.readers.fields import Fields, hexadecimals, integers, labels
from host.data.readers.first_seen import MOST_VALUES, FirstSeen
from host.data.readers.lines import place
from host.data.readers.shapes import check_model
from host.data.readers.table import read_lines
from host.hashing import mix64
from host.model import Model
from host.samples import Samples

__all__ = ["CATEGORIES", "EMPTY_CATEGORY", "INTEGERS", "category_rows", "exactly", "read"]

INTEGERS, CATEGORIES = 13, 26
EMPTY_CATEGORY = 1 << 32
"""Hash input of an empty category: the smallest value that is not a 32-bit category."""

_LAYOUT = "label, 13 integers, 26 hexadecimal categories, separated by tabs"
_SHORT = "; for samples without labels, put 0 and a tab before each line"


def category_rows(values: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
    """Return the row of each category: MurmurHash3's 64-bit finaliser modulo the rows.

    ``values`` are 32-bit values or `EMPTY_CATEGORY`; see :func:`host.hashing.mix64`.
    """
    return (mix64(values.astype(np.uint64)) % np.asarray(rows, np.uint64)).astype(np.int64)


Index = Callable[[Fields, np.ndarray], np.ndarray]
"""Maps the categories of a chunk, ``[lines, 26]``, to rows; arguments: fields and values."""


def read(path: str | Path, model: Model | None, index: Index | None = None) -> Iterator[Samples]:
    """Yield the samples of a Criteo file, a few thousand per chunk.

    A line has a label (0 or 1), 13 integers and 26 hexadecimal categories of up to 8 digits,
    separated by tabs; integers and categories may be empty; there is no header. Blank lines are
    skipped. A dense feature is log(1 + max(x, 0)), computed in float64 and rounded once, or 0 if
    missing. A category, even an empty one, becomes its `category_rows`. Without a model a category
    keeps its value, and an empty one becomes `EMPTY_CATEGORY`. ``index`` replaces this mapping.

    Raises
    ------
    InputError
        The line and column of a malformed field, or of a field that ``index`` rejects.
    ValueError
        The model does not have 13 dense features and 26 tables.
    """
    check_model("Criteo", model, INTEGERS, CATEGORIES)
    sizes = np.array(model.rows, np.uint64) if model else None
    for fields in read_lines(path, b"\t", 1 + INTEGERS + CATEGORIES, _LAYOUT, _SHORT):
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
        if index is not None:
            rows = index(categories, rows)
        elif sizes is not None:
            rows = category_rows(rows, sizes)
        yield Samples.one_hot(dense, label, rows)


def exactly() -> Callable[[str | Path, Model | None], Iterator[Samples]]:
    """Return a reader for consecutive files that numbers categories.

    It reads as `read` does, but a category becomes the number of distinct categories that its table
    had before its first occurrence, in the order of lines and files. An empty category is the
    category 0. `data_utils.py` of facebookresearch/dlrm does the same. The reader needs a single
    pass and holds the distinct values, see :mod:`host.data.readers.first_seen`.

    Raises as `read` does, and `InputError` for a number beyond the model's rows, and for more than
    `MOST_VALUES` distinct values.
    """
    tables = [FirstSeen() for _ in range(CATEGORIES)]

    def samples(path: str | Path, model: Model | None) -> Iterator[Samples]:
        def index(fields: Fields, values: np.ndarray) -> np.ndarray:
            values = np.where(values == EMPTY_CATEGORY, 0, values).astype(np.uint32)
            rows = np.stack([table.numbers(values[:, number])
                             for number, table in enumerate(tables)], axis=1)
            held = sum(map(len, tables))
            if held > MOST_VALUES:
                raise place(fields.chunk, 0, f"categories must have at most {MOST_VALUES} distinct "
                            f"values, not {held}: use --index hash")
            if model is not None:
                fields.require(rows < np.array(model.rows), lambda text, at:
                               f"category {at[1] + 1}, {text!r}, has number {rows[at]}, beyond the "
                               f"{model.rows[at[1]]} rows of table {at[1]} of model {model.name}")
            return rows

        return read(path, model, index)

    return samples
