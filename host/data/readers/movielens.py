"""Reader of MovieLens ``ratings.csv``: user, movie, rating and timestamp."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from host.data.readers.fields import Fields, decimals
from host.data.readers.shapes import check_model, table_sizes
from host.data.readers.table import read_columns
from host.model import Model
from host.reading import refuse_pipe
from host.samples import Samples

__all__ = ["NAMES", "read"]

NAMES = ("userId", "movieId", "rating", "timestamp")
"""The columns that the reader uses."""

_RATINGS = {text: float(text) for whole in range(6) for text in
            (f"{whole}", f"{whole}.0", f"{whole}.5") if float(text) <= 5}
_LIKED = 4.0


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of a ``ratings.csv``, in file order, a few ten thousand per chunk.

    Table 0 is the user, table 1 the movie; their numbers are the rows. The only dense feature is
    the timestamp, scaled to 0 … 1 between the minimum and maximum of the file (which takes a second
    pass), or 0 if these are equal. The label is 1 for a rating of 4 or more.

    Raises
    ------
    InputError
        The line and column of a wrong header, of a line with more or fewer columns than the header,
        of a field that is not a valid number, or of a user or movie beyond the model's tables;
        without a model any row is accepted. The file is a pipe.
    ValueError
        The model does not have one dense feature and two tables.
    """
    check_model("MovieLens", model, 1, 2)
    refuse_pipe(path)
    sizes = table_sizes(model, 2).tolist()
    first, last = _span(path)
    scale = max(1, last - first)
    for fields in _columns(path):
        rows = np.empty((len(fields.starts), 2), np.int64)
        for table, name in enumerate(("userId", "movieId")):
            column = fields[:, table]
            rows[:, table], good = decimals(column)
            column.require(good, lambda text, at: f"{name} is not a number: {text!r}")
            size = sizes[table]
            column.require(rows[:, table] < size, lambda text, at:
                           f"{name} {text} is beyond the {size} rows of table {table}")
        label = _ratings(fields[:, 2]) >= _LIKED
        seconds = (_timestamps(fields) - first).astype(np.float64) / scale
        yield Samples.one_hot(seconds[:, None], label, rows)


def _columns(path: str | Path) -> Iterator[Fields]:
    return read_columns(path, NAMES, ",".join(NAMES), "ratings")


def _timestamps(fields: Fields) -> np.ndarray:
    column = fields[:, 3]
    value, good = decimals(column)
    column.require(good, lambda text, at: f"timestamp is not a number: {text!r}")
    return value


def _span(path: str | Path) -> tuple[int, int]:
    low, high = [], []
    for fields in _columns(path):
        times = _timestamps(fields)
        low.append(int(times.min()))
        high.append(int(times.max()))
    return min(low), max(high)


def _ratings(column: Fields) -> np.ndarray:
    """Return the ratings, by a table of all valid texts of one to three bytes."""
    drop = (64 - 8 * np.clip(column.lengths, 0, 8)).astype(np.uint64)
    code = (column.chunk.words[column.starts] << drop) >> drop
    values = np.full(column.starts.shape, np.nan)
    for text, rating in _RATINGS.items():
        values[(code == int.from_bytes(text.encode(), "little"))
               & (column.lengths == len(text))] = rating
    column.require(~np.isnan(values), lambda text, at:
                   f"rating must be 0 to 5 in steps of a half, not {text!r}")
    return values
