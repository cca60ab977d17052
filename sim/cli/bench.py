"""The command ``python -m sim bench``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sim.bench.rows import SECTIONS
from sim.files.outputs import check_outputs

__all__ = ["bench"]


def bench(
    only: Annotated[str | None, typer.Option(
        metavar="NAME,...", help=f"Measure only these: {', '.join(SECTIONS)}.")] = None,
    json: Annotated[str | None, typer.Option(
        help="Write each row to this file when it is finished; the same command goes on where it "
             "was interrupted. - is standard output, at the end.")] = None,
) -> None:
    """Measure what the design promises: rates, latencies, resources, each with its target."""
    # What measures loads every block: the other commands do without it.
    from sim.bench import bench as measured
    from sim.bench.tables import figure, latency_table, note_table, row_table

    check_outputs({"json": json})
    console = Console(stderr=json == "-")

    def progress(done: int, total: int, line: str) -> None:
        # Lines, no bar: a compiler under way has a display of its own.
        console.print(f"[dim]{done} of {total}:[/dim] {escape(line)}", highlight=False,
                      soft_wrap=True)

    def finished(row: dict) -> None:
        console.print(f"    {row['name']}: {figure(row['value'])} {row['unit']}",
                      highlight=False, markup=False, soft_wrap=True)

    names = [name.strip() for name in only.split(",")] if only is not None else []
    result = measured.bench(names, json, progress, finished)
    latencies = [row for row in result["rows"] if row["section"] == "latency"]
    rows = [row for row in result["rows"] if row["section"] != "latency"]
    if rows:
        console.print(row_table(rows), note_table(rows), sep="\n")
    if latencies:
        console.print(latency_table(latencies))
    console.print("not built yet: " + "; ".join(
        f"{name} ({why})" for name, why in result["not_built"].items()), style="dim",
        highlight=False)
