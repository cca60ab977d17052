"""The command ``python -m sim run``."""

import sys
from typing import Any

import typer
from rich.console import Console

from sim import api
from sim.cli.command import command
from sim.cli.end import conclude
from sim.cli.options import to_file
from sim.cli.progress import RunBar
from sim.files.outputs import write_json
from sim.files.stop import stoppable
from sim.job.options import RunArguments

__all__ = ["run"]


@command(RunArguments)
def run(given: dict[str, Any]) -> None:
    """Run samples through a cluster and check every result bit for bit."""
    from sim.run.report import cold, failures, stopped, table

    json = given["json"]
    given = given | {"json": to_file(json, given)}
    console = Console(stderr=json == "-")
    lines: list[str] = []
    with stoppable() as stop, RunBar(console) as progress:
        result = api.run(**given, progress=progress, stop=stop, tell=lines.append)
    if json == "-":
        write_json(result, json)
    if (why := cold(result)) is not None:
        print(f"sim: {why}", file=sys.stderr)
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
