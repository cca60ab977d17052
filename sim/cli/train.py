"""The command ``python -m sim train``."""

from typing import Any

import typer

from sim import api
from sim.cli.command import Shown, command
from sim.cli.end import conclude
from sim.cli.progress import TrainBar
from sim.files.stop import stoppable
from sim.training.options import TrainArguments

__all__ = ["train"]


@command(TrainArguments)
def train(given: dict[str, Any], shown: Shown) -> None:
    """Train a DLRM on a cluster and compare every written row bit for bit."""
    from sim.training.report import failures, stopped, table

    console = shown.console
    lines: list[str] = []
    with stoppable() as stop, TrainBar(console, given["checkpoint"]) as progress:
        result = shown.result(
            api.train(**given, progress=progress, stop=stop, tell=lines.append))
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
