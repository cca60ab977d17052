"""The command ``python -m sim plan``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from host.data.datasets import DATA_HELP, FORMAT_HELP, one_or_several
from sim.cli.progress import SampleCount
from sim.files.outputs import check_outputs, check_picture, write_json
from sim.job.options import RunOptions

__all__ = ["plan"]

_FROM_CLUSTER = "that of the cluster"


def plan(
    model: Annotated[str | None, typer.Option(help="DLRM: a preset or a TOML file.")] = None,
    cluster: Annotated[str, typer.Option(
        help="Nodes, links, memories and NIC: a preset or a TOML file. Other options go before "
             "it.")] = "paper",
    config: Annotated[str | None, typer.Option(
        help="Preset of the NIC; replaces the NIC of --cluster.",
        show_default=_FROM_CLUSTER)] = None,
    set: Annotated[list[str] | None, typer.Option(
        help="field=value of the NIC's configuration or registers; may be repeated.")] = None,
    nodes: Annotated[int | None, typer.Option(
        help="Nodes of the cluster.", show_default=_FROM_CLUSTER)] = None,
    placement: Annotated[str, typer.Option(
        help="table: whole tables; row: rows hashed over nodes.")] = RunOptions.placement,
    optimizer: Annotated[str, typer.Option(
        help="Whose state the memory must hold: none, sgd or rowwise-adagrad.")] = "none",
    hit_rate: Annotated[float | None, typer.Option(
        help="Of the unique keys that enter a local cache; default: what caches of the NIC's size "
             "hit on the samples.")] = None,
    data: Annotated[list[str] | None, typer.Option(help=DATA_HELP)] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT_HELP)] = None,
    samples: Annotated[int | None, typer.Option(
        help="Samples to count; default all of a file, 1,024 of the generator.")] = None,
    mini_batch: Annotated[int, typer.Option(
        help="Samples of a mini-batch, over all nodes.")] = RunOptions.mini_batch,
    in_flight: Annotated[int, typer.Option(
        help="Mini-batches under way at once.")] = RunOptions.in_flight,
    warmup: Annotated[int, typer.Option(
        help="Mini-batches that fill the caches and are not counted.")] = RunOptions.warmup,
    network: Annotated[str | None, typer.Option(
        help="Network profile: its name or a TOML file.", show_default=_FROM_CLUSTER)] = None,
    gpu: Annotated[str | None, typer.Option(
        help="GPU profile: its name or a TOML file.", show_default=_FROM_CLUSTER)] = None,
    pcie: Annotated[str | None, typer.Option(
        help="PCIe profile: its name or a TOML file.", show_default=_FROM_CLUSTER)] = None,
    seed: Annotated[int, typer.Option(help="Of generated samples.")] = RunOptions.seed,
    json: Annotated[str | None, typer.Option(
        help="Write the results to this file; - is standard output.")] = None,
    picture: Annotated[str | None, typer.Option(
        help="Draw the results to this file (.png, .svg, .pdf).")] = None,
) -> None:
    """What a cluster needs for a model, what fits and what binds, without running RTL."""
    # Matplotlib is slow to load, and the other commands do not draw this.
    from sim.offline import plan as planner
    from sim.offline.picture_plan import draw_plan
    from sim.offline.plan_table import plan_tables

    check_picture(picture)
    check_outputs({"json": json, "picture": picture},
                  {"data": data, "model": model, "cluster": cluster, "network": network,
                   "gpu": gpu, "pcie": pcie})
    options = RunOptions.of(
        cluster=cluster, config=config, settings=tuple(set or ()), model=model, nodes=nodes,
        samples=samples, mini_batch=mini_batch, in_flight=in_flight, warmup=warmup,
        data=one_or_several(data), format=format, placement=placement, network=network, gpu=gpu,
        pcie=pcie, seed=seed)
    console = Console(stderr=json == "-")
    with SampleCount(console) as progress:
        result = planner.plan(options, optimizer=optimizer, hit_rate=hit_rate, progress=progress)
    write_json(result, json)
    console.print(plan_tables(result))
    if picture:
        draw_plan(result, picture)
    found = planner.failures(result)
    for line in found:
        print(f"sim: {line}", file=sys.stderr)
    raise typer.Exit(1 if found else 0)
