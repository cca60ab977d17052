"""Reader of key traces: the keys that a system looked up per sample, as text or as an array."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from host.data.readers import trace_array, trace_multi_hot
from host.data.readers.arrays import storage
from host.data.readers.fields import Fields, decimals
from host.data.readers.lines import Chunk, read_chunks
from host.data.readers.shapes import table_sizes
from host.model import Model
from host.reading import refuse_pipe
from host.samples import Samples
from rtl.formats import ROW_BITS, TABLE_BITS

__all__ = ["read", "scan_rows"]

_CHUNK_BAGS = 1 << 22
_ARRAYS = {"npy": trace_array, "npz": trace_multi_hot}


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of a key trace, in file order.

    A trace is text, plain or gzip, a ``.npy`` file (:mod:`host.data.readers.trace_array`) or an
    ``.npz`` file (:mod:`host.data.readers.trace_multi_hot`), detected by content. Each line of text
    is a sample: ``table:row`` in decimal, separated by blanks or tabs, in any order. A repeated
    table makes its bag longer; a bag keeps its keys in line order. An empty line is a sample of
    empty bags. A trace has no dense features and no labels: both are zeros. Without a model, a pass
    over the file finds the number of tables.

    Raises
    ------
    InputError
        The line and column of a malformed ``table:row``, or of a key beyond the model's tables or
        rows.
    """
    if (kind := storage(path)) is not None:
        yield from _ARRAYS[kind].read(path, model)
        return
    sizes = table_sizes(model, len(model.rows if model else scan_rows(path)))
    dense = model.dense if model else 1
    for chunk in read_chunks(path):
        tables, rows, lines, count = _keys(chunk, sizes)
        step = max(1, _CHUNK_BAGS // len(sizes))
        for first in range(0, count, step):
            n = min(step, count - first)
            part = slice(*np.searchsorted(lines, (first, first + n)))
            bags = (lines[part] - first) * len(sizes) + tables[part]
            order = np.argsort(bags, kind="stable")
            lengths = np.bincount(bags, minlength=n * len(sizes))
            yield Samples(np.zeros((n, dense), np.float32), np.zeros(n, np.float32),
                          lengths.reshape(n, len(sizes)).astype(np.int32),
                          tables[part][order].astype(np.int32), rows[part][order])


def scan_rows(path: str | Path) -> tuple[int, ...]:
    """Return the maximum row of each table of a trace, plus 1; 1 for an unused table.

    Raises `InputError` for a pipe, because the samples need a second pass.
    """
    refuse_pipe(path, ", or name a model")
    if (kind := storage(path)) is not None:
        return _ARRAYS[kind].scan_rows(path)
    largest = np.zeros(1, np.int64)
    for chunk in read_chunks(path):
        tables, rows, _, _ = _keys(chunk, None)
        if len(tables):
            grown = np.zeros(max(len(largest), tables.max() + 1), np.int64)
            grown[:len(largest)] = largest
            np.maximum.at(grown, tables, rows)
            largest = grown
    return tuple(int(row) + 1 for row in largest)


def _keys(chunk: Chunk, sizes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return the table, row and line (from 0) of each key, and the number of lines."""
    data = chunk.bytes
    newlines = np.flatnonzero(data == 10)
    inside = (data != 32) & (data != 9) & (data != 10)
    edges = np.diff(inside, prepend=False)  # where runs of non-blank bytes begin and end
    bounds = np.flatnonzero(edges)
    starts, ends = bounds[0::2], bounds[1::2]
    words = Fields(chunk, starts, ends - starts)
    colons = np.flatnonzero(data == ord(":"))
    before = np.searchsorted(colons, starts)
    many = np.searchsorted(colons, ends) - before
    words.require(many == 1, lambda text, at: f"a key must be table:row, not {text!r}")
    middle = colons[before] if len(starts) else starts
    tables, table_good = decimals(Fields(chunk, starts, middle - starts))
    rows, row_good = decimals(Fields(chunk, middle + 1, ends - middle - 1))
    words.require(table_good & row_good,
                  lambda text, at: f"a key must be table:row in decimal, not {text!r}")
    count = 1 << TABLE_BITS if sizes is None else len(sizes)
    words.require(tables < count, lambda text, at: f"table of {text} is beyond the {count} tables")
    limits = np.full(len(tables), (1 << ROW_BITS) - 1) if sizes is None else sizes[tables]
    words.require(rows < limits, lambda text, at:
                  f"row of {text} is beyond the {limits[at[0]]} rows of its table")
    return tables, rows, np.searchsorted(newlines, starts), len(newlines)
