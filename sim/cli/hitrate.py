"""The command ``python -m sim hitrate``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from host.data.datasets import DATA_HELP, FORMAT_HELP, one_or_several
from sim.cli.progress import SampleCount
from sim.files.outputs import LiveJson, check_outputs, check_picture, write_json
from sim.files.stop import kept_by, stoppable
from sim.job.options import RunOptions

__all__ = ["hitrate"]


def hitrate(
    sizes: Annotated[str | None, typer.Option(
        help="Rows of a node's cache, several with commas between; 0 is off. "
             "Default: a quarter to four times that of the NIC.")] = None,
    data: Annotated[list[str] | None, typer.Option(help=DATA_HELP)] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT_HELP)] = None,
    model: Annotated[str | None, typer.Option(help="DLRM: a preset or a TOML file.")] = None,
    policy: Annotated[str, typer.Option(
        help="Replacement policies, with commas between: lru.")] = "lru",
    ways: Annotated[int | None, typer.Option(
        help="Ways of a set; 0: fully associative. Default: those of the NIC.")] = None,
    config: Annotated[str | None, typer.Option(
        help="Preset of the NIC, for sizes and ways.", show_default=RunOptions.config)] = None,
    cluster: Annotated[str | None, typer.Option(
        help="Nodes and NIC: a preset or a TOML file. Other options go before it.")] = None,
    nodes: Annotated[int | None, typer.Option(
        help="Nodes of the cluster.", show_default=str(RunOptions.nodes))] = None,
    placement: Annotated[str, typer.Option(
        help="table: whole tables; row: rows hashed over nodes.")] = RunOptions.placement,
    mini_batch: Annotated[int, typer.Option(
        help="Samples of a mini-batch, over all nodes.")] = RunOptions.mini_batch,
    samples: Annotated[int | None, typer.Option(
        help="Samples to read; default all of a file, 1,024 of the generator.")] = None,
    warmup: Annotated[int, typer.Option(
        help="Mini-batches that fill the caches and are not counted.")] = RunOptions.warmup,
    seed: Annotated[int, typer.Option(help="Of generated samples.")] = RunOptions.seed,
    json: Annotated[str | None, typer.Option(
        help="Write the results to this file; - is standard output.")] = None,
    picture: Annotated[str | None, typer.Option(
        help="Draw the results to this file (.png, .svg, .pdf).")] = None,
) -> None:
    """Hit rate of the local cache against its size, without running RTL."""
    # Matplotlib is slow to load, and the other commands do not draw this.
    from sim.offline import hitrate as model_of
    from sim.offline.picture_hitrate import draw_hitrate

    check_picture(picture)
    check_outputs({"json": json, "picture": picture},
                  {"data": data, "model": model, "cluster": cluster})
    console = Console(stderr=json == "-")
    live = LiveJson(json)
    with stoppable() as stop, kept_by(live, json), SampleCount(console) as progress:
        result = model_of.hitrate(
            None if sizes is None else _numbers(sizes), data=one_or_several(data), format=format,
            model=model, policies=[name.strip() for name in policy.split(",")], ways=ways,
            nodes=nodes, placement=placement, mini_batch=mini_batch, samples=samples,
            warmup=warmup, seed=seed,
            config=config, cluster=cluster, progress=progress, stop=stop, live=live)
        write_json(result, json)
    console.print(model_of.hitrate_table(result))
    if (said := model_of.hitrate_stopped(result)) is not None:
        print(f"sim: {said}", file=sys.stderr)
        raise typer.Exit(stop.status or 1)
    if picture:
        draw_hitrate(result, picture)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"sizes must be integers with commas between, not {text!r}") from None
