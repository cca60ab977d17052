"""Column slices: models whose tables have some columns of the rows of other tables.

A slice has all rows of its table, and is looked up with the keys of its table. Pooling adds each
column apart: the concatenated vectors of all slices are the vector of the table, bit for bit.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from host.model.blocks import rows_of_block
from host.model.shape import Model
from host.samples import Samples

__all__ = ["are_slices", "columns_of", "columns_text", "sliced", "table_label", "with_columns",
           "without_columns"]


def with_columns(model: Model, widths: Mapping[int, int], beat: int) -> Model:
    """Return ``model`` with slices in place of tables, in the order of their columns.

    widths: columns of a slice, by table. beat: values of a beat, of which a width is a multiple.

    Raises ``ValueError`` for a table that the model lacks, or a width that does not divide the
    dimension of its table.
    """
    for table, width in widths.items():
        if not 0 <= table < model.tables:
            raise ValueError(f"columns must name tables 0 to {model.tables - 1}, not {table}")
        if width < 1 or width % beat:
            raise ValueError(f"columns of table {table} must be a multiple of {beat}, the values "
                             f"of a beat, not {width}")
        dimension = model.table_dimensions[table]
        if dimension % width:
            raise ValueError(f"columns of table {table} must divide its dimension, {dimension}, "
                             f"not {width}")
    slices = tuple((table, first) for table, dimension in enumerate(model.table_dimensions)
                   for first in range(0, dimension, widths.get(table, dimension)))
    return replace(
        model.with_tables([table for table, _ in slices]), slices=slices, dimensions=tuple(
            widths.get(table, model.table_dimensions[table]) for table, _ in slices))


def without_columns(model: Model) -> Model:
    """Return the model of the original tables of ``model``, which has all of their slices."""
    if not model.slices:
        return model
    first = [number for number, (_, column) in enumerate(model.slices) if column == 0]
    return replace(model.with_tables(first), slices=(), dimensions=tuple(
        np.bincount(model.originals, model.table_dimensions).astype(int).tolist()))


def sliced(samples: Samples, model: Model) -> Samples:
    """Return the ``samples`` of the original tables with bags of the slices or blocks of ``model``.
    """
    if not model.slices:
        return samples
    parts = samples.with_tables(np.array(model.originals))
    if not model.first_rows:
        return parts
    return parts.of_rows(np.array(model.first_rows), np.array(model.rows))


def are_slices(model: Model) -> np.ndarray:
    """Return whether each table has only some columns or rows of its original table: bool
    ``[tables]``."""
    return np.bincount(model.originals)[list(model.originals)] > 1


def columns_of(model: Model, table: int) -> tuple[int, int] | None:
    """Return the first and the last column of a slice; None for a whole table."""
    if model.first_rows or not are_slices(model)[table]:
        return None
    first = model.slices[table][1]
    return first, first + model.table_dimensions[table] - 1


def columns_text(model: Model) -> str | None:
    """Return the tables with slices, and their widths, as ``TABLE:WIDTH,...``; None without any."""
    if model.first_rows:
        return None
    found = {model.originals[number]: model.table_dimensions[number]
             for number in np.flatnonzero(are_slices(model)).tolist()}
    return ",".join(f"{table}:{width}" for table, width in found.items()) or None


def table_label(model: Model, table: int) -> str:
    """Return a table in messages: the number of its original table, and the columns of a slice or
    the rows of a block."""
    parts = {"columns": columns_of(model, table), "rows": rows_of_block(model, table)}
    return ", ".join([str(model.originals[table]), *(
        f"{name} {part[0]} to {part[1]}" for name, part in parts.items() if part)])
