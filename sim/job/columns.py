"""Column slices and row blocks of tables: the options ``columns`` and ``blocks`` of a run."""

from collections.abc import Sequence

import numpy as np

from host.model import Model, are_slices, with_blocks, with_columns
from host.placement.shard import ShardPlan
from rtl.config import LANES

__all__ = ["FORMS", "check_slices", "parse_slices", "tables_named", "with_slices"]

FORMS = {"columns": "TABLE:WIDTH,...", "blocks": "TABLE:BLOCKS,..."}
"""Form of each option."""


def parse_slices(option: str, text: str | None) -> tuple[tuple[str, int], ...]:
    """Return the tables in ``text`` of an ``option`` of `FORMS` by name or number, each with its
    value; empty for None. ``ValueError`` for another form."""
    found = []
    for entry in () if text is None else text.split(","):
        table, _, value = entry.rpartition(":")
        if not (table and value.isascii() and value.isdecimal() and len(value) < 10):
            raise ValueError(f"{option} must be {FORMS[option]}, such as 20:32, not {text!r}")
        found.append((table, int(value)))
    return tuple(found)


def with_slices(model: Model, columns: str | None, blocks: str | None, wire: str,
                names: Sequence[str] = ()) -> Model:
    """Return ``model`` with the slices of the option ``columns``, or the row blocks of ``blocks``,
    in place of tables.

    wire: format of vectors. names: of the tables, empty without names.

    Raises ``ValueError`` for unknown tables, for both options, and as
    :func:`host.model.columns.with_columns` and :func:`host.model.blocks.with_blocks` do.
    """
    if columns is not None and blocks is not None:
        raise ValueError(f"blocks must be left out with columns, not {blocks!r}")
    widths, counts = (_values(option, text, names)
                      for option, text in (("columns", columns), ("blocks", blocks)))
    # Two values in a lane, or a group of codes.
    beat = LANES if wire == "float32" else 2 * LANES
    return (with_columns(model, widths, beat) if widths else
            with_blocks(model, counts) if counts else model)


def _values(option: str, text: str | None, names: Sequence[str]) -> dict[int, int]:
    """Return the value of each table that an option names."""
    found: dict[int, int] = {}
    for name, value in parse_slices(option, text):
        for table in {int(name)} if name.isdecimal() else tables_named(name, names, option):
            if table in found:
                raise ValueError(f"{option} must name a table once, but table {table} is named "
                                 f"twice")
            found[table] = value
    return found


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
    """Raise ``ValueError`` for a slice or block that pools at the requester, where vectors of all
    tables have the same width, and keys of a bag stay together.

    reasons: why tables cannot pool at their owner.
    """
    left = np.flatnonzero((plan.owner_pooled == 0) & are_slices(model))
    kind = "row blocks" if model.first_rows else "column slices"
    if len(left):
        raise ValueError(f"table {model.originals[left[0]]} has {kind}, so it must pool at "
                         f"its owner, not at the requester: {reasons[left[0]] or 'use pool owner'}")
