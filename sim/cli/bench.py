"""The command ``python -m sim bench``."""

from typing import Any

from sim import api
from sim.bench.rows import BenchOptions
from sim.cli.command import Shown, command
from sim.cli.progress import JobLines

__all__ = ["bench"]


@command(BenchOptions)
def bench(given: dict[str, Any], shown: Shown) -> None:
    """Measure rates, latencies and resources of the design, each with its target."""
    from sim.bench.tables import figure, latency_table, note_table, row_table

    console = shown.console

    def finished(row: dict) -> None:
        console.print(f"    {row['name']}: {figure(row['value'])} {row['unit']}",
                      highlight=False, markup=False, soft_wrap=True)

    result = shown.result(api.bench(**given, progress=JobLines(console), finished=finished))
    latencies = [row for row in result["rows"] if row["section"] == "latency"]
    rows = [row for row in result["rows"] if row["section"] != "latency"]
    if rows:
        console.print(row_table(rows), note_table(rows), sep="\n")
    if latencies:
        console.print(latency_table(latencies))
    console.print("not built: " + "; ".join(
        f"{name} ({why})" for name, why in result["not_built"].items()), style="dim",
        highlight=False)
