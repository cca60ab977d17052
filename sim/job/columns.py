"""Column slices of tables: the option ``columns`` of a run."""

from collections.abc import Sequence

import numpy as np

from host.model import Model, are_slices, with_columns
from host.placement.shard import ShardPlan
from rtl.config import LANES

__all__ = ["check_slices", "parse_columns", "tables_named", "with_slices"]


def parse_columns(columns: str | None) -> tuple[tuple[str, int], ...]:
    """Return the tables in ``TABLE:WIDTH,...`` by name or number, each with the width of its
    slices; empty for None. ``ValueError`` for another form."""
    found = []
    for entry in () if columns is None else columns.split(","):
        table, _, width = entry.rpartition(":")
        if not (table and width.isascii() and width.isdecimal() and len(width) < 10):
            raise ValueError(f"columns must be TABLE:WIDTH,..., such as 20:32, not {columns!r}")
        found.append((table, int(width)))
    return tuple(found)


def with_slices(model: Model, columns: str | None, wire: str,
                names: Sequence[str] = ()) -> Model:
    """Return ``model`` with the slices of the option ``columns`` in place of tables.

    wire: format of vectors. names: of the tables, empty without names.

    Raises ``ValueError`` for unknown tables, and as :func:`host.model.columns.with_columns` does.
    """
    widths: dict[int, int] = {}
    for name, width in parse_columns(columns):
        numbers = {int(name)} if name.isdecimal() else tables_named(name, names, "columns")
        for table in numbers:
            if table in widths:
                raise ValueError(f"columns must name a table once, but table {table} is named "
                                 f"twice")
            widths[table] = width
    # Two values in a lane, or a group of codes.
    beat = LANES if wire == "float32" else 2 * LANES
    return with_columns(model, widths, beat) if widths else model


def tables_named(name: str, names: Sequence[str], option: str) -> set[int]:
    """Return the numbers of the tables of this name; ``ValueError`` without any, which begins with
    the ``option``.

    names: of the tables of a model, empty without names.
    """
    numbers = {number for number, known in enumerate(names) if known == name}
    if not numbers:
        known = ", ".join(dict.fromkeys(filter(None, names)))
        raise ValueError(f"{option} must name tables of the model ({known}), not {name!r}"
                         if known else f"{option} must have numbers of tables, not {name!r}: the "
                                       f"model has no names of tables")
    return numbers


def check_slices(plan: ShardPlan, model: Model, reasons: Sequence[str | None]) -> None:
    """Raise ``ValueError`` for a slice that pools at the requester, where vectors of all tables
    have the same width.

    reasons: why tables cannot pool at their owner.
    """
    left = np.flatnonzero((plan.owner_pooled == 0) & are_slices(model))
    if len(left):
        raise ValueError(f"table {model.originals[left[0]]} has column slices, so it must pool at "
                         f"its owner, not at the requester: {reasons[left[0]] or 'use pool owner'}")
