"""Initial values of embedding rows: a pure function of seed, table and row, never stored."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from host.hashing import GOLDEN, mix64, mix64_int
from host.model import Model

__all__ = ["RowConstants", "row_constants", "row_values"]

_BLOCK = 8192
"""Keys hashed at a time, so that the working set stays in the processor's cache."""


class RowConstants(NamedTuple):
    """Constants shared by the rows of a model.

    Members
    -------
    sizes, seeds, scales: rows, seed and scale of each table.
    steps: increments of a row's hash, one per pair of elements.
    lengths: values of a row of each table.
    pairs: pairs of elements before the first value of each table, 0 for a whole table.
    firsts: rows before the first row of each table, 0 for a whole table.
    """

    sizes: np.ndarray
    seeds: np.ndarray
    scales: np.ndarray
    steps: np.ndarray
    lengths: np.ndarray
    pairs: np.ndarray
    firsts: np.ndarray


@lru_cache(maxsize=16)
def row_constants(rows: tuple[int, ...], dimensions: tuple[int, ...], seed: int,
                  slices: tuple[tuple[int, int], ...] = (),
                  first_rows: tuple[int, ...] = ()) -> RowConstants:
    """Return the constants of tables of ``rows`` rows of ``dimensions`` values; read-only.

    slices: of a model with column slices, which begin at even columns. first_rows: of a model with
    row blocks.
    """
    sizes = np.array(rows, np.int64)
    tables, first = zip(*slices) if slices else (range(len(rows)), (0,) * len(rows))
    whole = np.bincount(tables, sizes)[list(tables)] if first_rows else sizes
    most = max(first) + max(dimensions)
    return RowConstants(
        sizes,
        np.array([mix64_int(seed, 0x726F77, table) for table in tables], np.uint64),
        np.sqrt(1.0 / whole.astype(np.float64)) * 2.0 ** -24,
        np.array([(i + 1) * GOLDEN & (1 << 64) - 1 for i in range(-(-most // 2))], np.uint64),
        np.array(dimensions, np.int64), np.array(first, np.int64) // 2,
        np.array(first_rows or (0,) * len(rows), np.int64))


def row_values(model: Model, seed: int, tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the initial vectors of the keys ``(tables[i], rows[i])``: float32 ``[n, width]``.

    A vector of a narrower table is a prefix of the vector that a wider table would have, padded
    with +0. A vector of a column slice is a part of the vector of its original table, and the rows
    of a row block are rows of its original table.

    Uniform in ±√(1 / rows of the table), as DLRM initialises. Element ``d`` comes from 24 bits of
    ``mix64(mix64(row ^ seed of the table) + (d // 2 + 1) · golden)``: the upper 24 bits for an even
    ``d``, the next 24 bits for an odd ``d``. If ``u`` is these bits, the value is ``(2u + 1 - 2^24)
    / 2^24 · √(1 / rows)``, computed in float64 and rounded once, so it is never 0.

    Raises
    ------
    ValueError
        A table or a row is outside the model.
    """
    tables = np.asarray(tables, np.int64)
    rows = np.asarray(rows, np.int64)
    # A negative number is a huge unsigned number.
    if len(tables) and tables.view(np.uint64).max() >= model.tables:
        raise ValueError(f"tables must be between 0 and {model.tables - 1}, "
                         f"not {tables.min()} to {tables.max()}")
    sizes, seeds, scales, steps, lengths, pairs, firsts = row_constants(
        model.rows, model.table_dimensions, seed, model.slices, model.first_rows)
    wrong = rows.view(np.uint64) >= sizes[tables].view(np.uint64)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"rows of table {tables[at]} must be below {sizes[tables[at]]}, "
                         f"not {rows[at]}")
    vectors, most = np.zeros((len(rows), model.width), np.float32), int(lengths.max())
    columns = np.arange(-(-most // 2))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        numbers = rows[part] + firsts[tables[part]] if model.first_rows else rows[part]
        base = mix64(numbers.astype(np.uint64) ^ seeds[tables[part]])
        hashes = mix64(base[:, None] + (
            steps[pairs[tables[part], None] + columns] if model.slices else steps))
        values = np.empty((len(base), 2 * len(columns)), np.float64)
        values[:, 0::2] = hashes >> np.uint64(40)
        values[:, 1::2] = (hashes >> np.uint64(16)) & np.uint64(0xFFFFFF)
        values *= 2.0
        values -= float((1 << 24) - 1)
        values *= scales[tables[part]][:, None]
        vectors[part, :most] = values[:, :most]
    if model.dimensions:
        vectors[np.arange(model.width) >= lengths[tables][:, None]] = 0
    return vectors
