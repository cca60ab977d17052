"""Row blocks: models whose tables have some consecutive rows of other tables.

A block is looked up with those keys of a bag whose rows it has. The vector of a bag is the sum of
the vectors of its blocks, added in ascending order, in float32: TorchRec's row-wise sharding. It
differs from the vector of the whole table by rounding. For a mean, GPUs divide the sum of each
block by the keys of the whole bag before they add.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from host.model.shape import Model

__all__ = ["blocks_text", "rows_of_block", "with_blocks", "without_blocks"]


def with_blocks(model: Model, counts: Mapping[int, int]) -> Model:
    """Return ``model`` with blocks of ``ceil(rows / count)`` rows in place of tables; the last
    block has the rest, and a count may exceed the blocks that have rows.

    counts: number of blocks, by table. Bags of a block are stated as those of its table.

    Raises ``ValueError`` for a table that the model lacks, or whose blocks would have no rows.
    """
    for table, count in counts.items():
        if not 0 <= table < model.tables:
            raise ValueError(f"blocks must name tables 0 to {model.tables - 1}, not {table}")
        if not 1 <= count <= model.rows[table]:
            raise ValueError(f"blocks of table {table} must be between 1 and {model.rows[table]}, "
                             f"its rows, not {count}")
    sizes = {table: -(-model.rows[table] // count) for table, count in counts.items()}
    blocks = [(table, first) for table, rows in enumerate(model.rows)
              for first in range(0, rows, sizes.get(table, rows))]
    return replace(
        model.with_host_means().with_tables([table for table, _ in blocks]),
        slices=tuple((table, 0) for table, _ in blocks),
        first_rows=tuple(first for _, first in blocks),
        rows=tuple(min(sizes.get(table, rows), rows - first) for table, first in blocks
                   for rows in [model.rows[table]]))


def without_blocks(model: Model) -> Model:
    """Return the model of the original tables of ``model``, which has all of their blocks."""
    if not model.first_rows:
        return model
    first = [number for number, row in enumerate(model.first_rows) if row == 0]
    return replace(model.with_tables(first), slices=(), first_rows=(), host_means=False, rows=tuple(
        np.bincount(model.originals, model.rows).astype(int).tolist()))


def rows_of_block(model: Model, table: int) -> tuple[int, int] | None:
    """Return the first and the last row of a block; None for a table with all rows."""
    if not model.first_rows or model.originals.count(model.originals[table]) == 1:
        return None
    first = model.first_rows[table]
    return first, first + model.rows[table] - 1


def blocks_text(model: Model) -> str | None:
    """Return the tables with blocks, and their number, as ``TABLE:BLOCKS,...``; None without any.
    """
    counts = np.bincount(model.originals) if model.first_rows else np.ones(0, np.int64)
    return ",".join(f"{table}:{counts[table]}" for table in np.flatnonzero(counts > 1)) or None
