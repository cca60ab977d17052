"""Tables of a bench for the terminal."""

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

__all__ = ["figure", "latency_table", "note_table", "row_table"]


def figure(value: float) -> str:
    """Return a figure as text: a count as an integer, other values with three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def row_table(rows: Sequence[dict]) -> Table:
    """Return a table of figures, their targets and whether they hold."""
    table = Table(title="EmberNIC bench", title_justify="left", box=box.SIMPLE,
                  padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("target", justify="right")
    table.add_column("holds")
    section = None
    for row in rows:
        if section not in (None, row["section"]):
            table.add_section()
        section = row["section"]
        target = "" if row["target"] is None else f"{row['sense']} {row['target']:g}"
        if row.get("bound") is not None:
            target = f"{target} of {figure(row['bound'])}".strip()
        table.add_row(escape(row["name"]), figure(row["value"]), escape(row["unit"]), target,
                      {True: "yes", False: "NO", None: ""}[row["holds"]])
    return table


def note_table(rows: Sequence[dict]) -> Table:
    """Return a table of notes on how each figure was measured."""
    table = Table.grid(padding=(0, 1))
    table.add_column(max_width=34)
    table.add_column(style="dim")
    for row in rows:
        if row.get("note"):
            table.add_row(escape(row["name"]), escape(row["note"]))
    return table


def latency_table(rows: Sequence[dict]) -> Table:
    """Return a table of latencies; shows the stated latency if it differs."""
    table = Table(title="Latency of idle blocks, in cycles", title_justify="left",
                  box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("block", "from", "to the first"):
        table.add_column(heading)
    table.add_column("cycles", justify="right")
    block = None
    for row in rows:
        differs = row["value"] != row["stated"]
        table.add_row(row["block"] if row["block"] != block else "", row["from"], row["to"],
                      f"{row['value']} (stated: {row['stated']})" if differs
                      else str(row["value"]))
        block = row["block"]
    return table
