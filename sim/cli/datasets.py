"""The command ``python -m sim datasets``."""

from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from sim import api
from sim.cli import options as option
from sim.cli.options import to_file
from sim.files.outputs import write_json

__all__ = ["datasets"]

datasets = typer.Typer(no_args_is_help=True, help="Show what is in the files of a data set.")

_LOGGED = 1_000_000
"""Samples from one line of progress to the next where there is no terminal."""


@datasets.callback()
def _commands() -> None:
    """Show what is in the files of a data set."""


@datasets.command()
def describe(
    files: Annotated[list[str], typer.Argument(
        help="Files of samples or folders of such files, taken together in order.")],
    format: option.Format = None,
    samples: Annotated[int | None, integer_option(
        help="Samples to read. Default: all of them.")] = None,
    most_keys: Annotated[int | None, integer_option(
        help="Most keys to hold in memory; with more of them, their number and skew are estimated, "
             "with the error. Default: 4,194,304, about 0.5 GB.")] = None,
    json: option.Json = None,
) -> None:
    """Count samples, cardinalities, bag sizes, skew and ranges of a data set, in bounded memory."""
    from sim.offline.datasets import describe_tables

    console = Console(stderr=json == "-")
    logged = 0
    with console.status("reading samples") as status:

        def progress(done: int) -> None:
            nonlocal logged
            status.update(f"{done:,} samples")
            if not console.is_terminal and done // _LOGGED > logged:
                logged = done // _LOGGED
                console.print(f"{done:,} samples", highlight=False)

        result = api.describe(files, format=format, samples=samples, most_keys=most_keys,
                              json=to_file(json, locals()), progress=progress)
    if json == "-":
        write_json(result, json)
    for shown in describe_tables(result):
        console.print(shown)
