"""The command ``python -m sim batching``."""

from typing import Annotated

import typer
from rich.console import Console

from host.data.datasets import DATA_HELP, FORMAT_HELP, one_or_several
from sim.files.outputs import check_outputs, write_json
from sim.job.options import RunOptions

__all__ = ["batching"]


def batching(
    data: Annotated[list[str] | None, typer.Option(help=DATA_HELP)] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT_HELP)] = None,
    model: Annotated[str | None, typer.Option(
        help="DLRM: a preset or a TOML file.",
        show_default="without data, each of kaggle, terabyte, avazu")] = None,
    samples: Annotated[int | None, typer.Option(
        help="Samples to use; default all of a file, 8,192 of the generator.")] = None,
    mini_batch: Annotated[int | None, typer.Option(
        help="Samples of a mini-batch.", show_default="128, terabyte also 2,048")] = None,
    window: Annotated[int | None, typer.Option(
        help="Samples that are loaded before mini-batches are formed of them.",
        show_default="16 mini-batches")] = None,
    hyperedges: Annotated[str | None, typer.Option(
        help="Hyperedge thresholds to try the graph algorithm with, with commas between.")] = None,
    seed: Annotated[int, typer.Option(help="Of generated samples.")] = RunOptions.seed,
    json: Annotated[str | None, typer.Option(
        help="Write the results to this file; - is standard output.")] = None,
) -> None:
    """Unique keys that each way to form mini-batches saves, and its cost, without running RTL."""
    from sim.offline import batching as model_of

    check_outputs({"json": json}, {"data": data, "model": model})
    console = Console(stderr=json == "-")
    with console.status("forming mini-batches") as status:

        def progress(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                console.print(doing, highlight=False)

        result = model_of.batching(
            data=one_or_several(data), format=format, model=model, samples=samples,
            mini_batch=mini_batch, window=window, hyperedges=_numbers(hyperedges), seed=seed,
            progress=progress)
    write_json(result, json)
    for table in model_of.batching_tables(result):
        console.print(table)


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"hyperedges must be integers with commas between, "
                         f"not {text!r}") from None
