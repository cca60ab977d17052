"""The command ``python -m sim bench``."""

from typing import Annotated

import typer
from rich.console import Console

from sim import api
from sim.bench.rows import SECTIONS
from sim.cli.options import to_file
from sim.cli.progress import JobLines
from sim.files.outputs import write_json

__all__ = ["bench"]


def bench(
    only: Annotated[str | None, typer.Option(
        metavar="NAME,...", help=f"Measure only these: {', '.join(SECTIONS)}.")] = None,
    json: Annotated[str | None, typer.Option(
        help="Write each row to this file as soon as it is finished; the same command goes on "
             "after an interruption. - is standard output, at the end.")] = None,
) -> None:
    """Measure what the design promises: rates, latencies and resources, each with its target."""
    from sim.bench.tables import figure, latency_table, note_table, row_table

    console = Console(stderr=json == "-")

    def finished(row: dict) -> None:
        console.print(f"    {row['name']}: {figure(row['value'])} {row['unit']}",
                      highlight=False, markup=False, soft_wrap=True)

    names = [name.strip() for name in only.split(",")] if only is not None else []
    result = api.bench(only=names, json=to_file(json, {}), progress=JobLines(console),
                       finished=finished)
    if json == "-":
        write_json(result, json)
    latencies = [row for row in result["rows"] if row["section"] == "latency"]
    rows = [row for row in result["rows"] if row["section"] != "latency"]
    if rows:
        console.print(row_table(rows), note_table(rows), sep="\n")
    if latencies:
        console.print(latency_table(latencies))
    console.print("not built yet: " + "; ".join(
        f"{name} ({why})" for name, why in result["not_built"].items()), style="dim",
        highlight=False)
