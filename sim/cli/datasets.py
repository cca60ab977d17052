"""The command ``python -m sim datasets``."""

from typing import Any

import typer

from sim import api
from sim.cli.command import Shown, command
from sim.offline.options import DescribeOptions

__all__ = ["datasets"]

datasets = typer.Typer(no_args_is_help=True, help="Describe the files of a data set.")

_LOGGED = 1_000_000
"""Samples between two lines of progress without a terminal."""


@datasets.callback()
def _commands() -> None:
    """Describe the files of a data set."""


@datasets.command()
@command(DescribeOptions)
def describe(given: dict[str, Any], shown: Shown) -> None:
    """Count samples, cardinalities, bag sizes, skew and ranges of a data set, in bounded memory."""
    from sim.offline.datasets import describe_tables

    logged = 0
    with shown.console.status("reading samples") as status:

        def progress(done: int) -> None:
            nonlocal logged
            status.update(f"{done:,} samples")
            if not shown.console.is_terminal and done // _LOGGED > logged:
                logged = done // _LOGGED
                shown.console.print(f"{done:,} samples", highlight=False)

        result = shown.result(api.describe(**given, progress=progress))
    for table in describe_tables(result):
        shown.console.print(table)
