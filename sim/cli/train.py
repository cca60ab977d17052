"""The command ``python -m sim train``."""

from typing import Any

import typer
from rich.console import Console

from sim import api
from sim.cli.command import command
from sim.cli.end import conclude
from sim.cli.options import to_file
from sim.cli.progress import TrainBar
from sim.files.outputs import write_json
from sim.files.stop import stoppable
from sim.training.options import TrainArguments

__all__ = ["train"]


@command(TrainArguments)
def train(given: dict[str, Any]) -> None:
    """Train a DLRM on a cluster and compare every row that is written, bit for bit."""
    from sim.training.report import failures, stopped, table

    json = given["json"]
    given = given | {"json": to_file(json, given)}
    console = Console(stderr=json == "-")
    lines: list[str] = []
    with stoppable() as stop, TrainBar(console, given["checkpoint"]) as progress:
        result = api.train(**given, progress=progress, stop=stop, tell=lines.append)
    if json == "-":
        write_json(result, json)
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
