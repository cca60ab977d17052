"""The command ``python -m sim datasets``."""

from typing import Annotated

import typer
from rich.console import Console

from host.data.datasets import FORMAT_HELP
from sim.files.outputs import check_outputs, write_json

__all__ = ["datasets"]

datasets = typer.Typer(no_args_is_help=True, help="Data sets: what is in their files.")

_LOGGED = 1_000_000
"""Samples between two lines where no progress can be shown."""


@datasets.callback()
def _commands() -> None:
    """Data sets: what is in their files."""


@datasets.command()
def describe(
    files: Annotated[list[str], typer.Argument(
        help="Files of samples or folders of such, taken together in order.")],
    format: Annotated[str | None, typer.Option(help=FORMAT_HELP)] = None,
    samples: Annotated[int | None, typer.Option(help="Samples to read; default all.")] = None,
    most_keys: Annotated[int | None, typer.Option(
        help="Keys held in memory, beyond which their number and skew are estimated, with the "
             "error; default 4,194,304, about 0.5 GB at most.")] = None,
    json: Annotated[str | None, typer.Option(
        help="Write the results to this file; - is standard output.")] = None,
) -> None:
    """Samples, cardinalities, bag sizes, skew and ranges of a data set, in bounded memory."""
    from sim.offline import datasets as model_of

    check_outputs({"json": json}, {"files": files})
    console = Console(stderr=json == "-")
    logged = 0
    with console.status("reading samples") as status:

        def progress(done: int) -> None:
            nonlocal logged
            status.update(f"{done:,} samples")
            if not console.is_terminal and done // _LOGGED > logged:
                logged = done // _LOGGED
                console.print(f"{done:,} samples", highlight=False)

        result = model_of.describe(files, format=format, samples=samples, most_keys=most_keys,
                                   progress=progress)
    write_json(result, json)
    for shown in model_of.describe_tables(result):
        console.print(shown)
