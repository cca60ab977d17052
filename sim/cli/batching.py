"""The command ``python -m sim batching``."""

from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT, integers, to_file
from sim.files.outputs import write_json

__all__ = ["batching"]


def batching(
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    model: Annotated[str | None, typer.Option(
        help="DLRM: a preset or a TOML file.",
        show_default="without data, each of kaggle, terabyte, avazu")] = None,
    samples: Annotated[int | None, integer_option(
        help="Samples to use. Default: all samples of a file, or 8,192 generated samples.")] = None,
    mini_batch: Annotated[int | None, integer_option(
        help="Samples of a mini-batch.", show_default="128, terabyte also 2,048")] = None,
    window: option.Window = None,
    hyperedges: Annotated[str | None, typer.Option(
        help="Hyperedge thresholds to try the graph algorithm with, with commas between.")] = None,
    seed: option.SampleSeed = DEFAULT["seed"],
    json: option.Json = None,
) -> None:
    """Compare the ways to form mini-batches: keys that each saves, and its cost. Runs no RTL."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {"json": to_file(json, locals()),
                        "hyperedges": integers(hyperedges or None, "hyperedges") or []}
    from sim.offline.batching import batching_tables

    console = Console(stderr=json == "-")
    with console.status("forming mini-batches") as status:

        def progress(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                console.print(doing, highlight=False)

        result = api.batching(**given, progress=progress)
    if json == "-":
        write_json(result, json)
    for table in batching_tables(result):
        console.print(table)
