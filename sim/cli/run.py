"""The command ``python -m sim run``."""

import sys
from typing import Any

import typer

from sim import api
from sim.cli.command import Shown, command
from sim.cli.end import conclude
from sim.cli.progress import RunBar
from sim.files.stop import stoppable
from sim.job.options import RunArguments

__all__ = ["run"]


@command(RunArguments)
def run(given: dict[str, Any], shown: Shown) -> None:
    """Run samples through a cluster and check every result bit for bit."""
    from sim.run.report import cold, failures, stopped, table

    console = shown.console
    lines: list[str] = []
    with stoppable() as stop, RunBar(console) as progress:
        result = shown.result(
            api.run(**given, progress=progress, stop=stop, tell=lines.append))
    if (why := cold(result)) is not None:
        print(f"sim: {why}", file=sys.stderr)
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
