"""The command ``python -m sim plan``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import number_option
from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT, to_file
from sim.cli.progress import SampleCount
from sim.files.outputs import write_json

__all__ = ["plan"]


def plan(
    model: option.Model = None,
    cluster: Annotated[str, typer.Option(
        help="Nodes, links, memories and NIC: a preset or a TOML file. Other options override "
             "it.")] = "paper",
    config: option.ConfigOfCluster = None,
    set: option.Set = None,
    nodes: option.NodesOfCluster = None,
    placement: option.Placement = DEFAULT["placement"],
    optimizer: Annotated[str, typer.Option(
        help="Optimizer whose state the memory must hold: none, sgd or rowwise-adagrad.")] = "none",
    hit_rate: Annotated[float | None, number_option(
        help="Hit rate of the unique keys that enter a local cache. Default: what caches of the "
             "NIC's size hit on the samples.")] = None,
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    samples: option.Samples = None,
    mini_batch: option.MiniBatch = DEFAULT["mini_batch"],
    in_flight: option.InFlight = DEFAULT["in_flight"],
    warmup: option.CacheWarmup = DEFAULT["warmup"],
    network: option.NetworkOfCluster = None,
    gpu: option.GpuOfCluster = None,
    pcie: option.PcieOfCluster = None,
    seed: option.SampleSeed = DEFAULT["seed"],
    json: option.Json = None,
    picture: option.Picture = None,
) -> None:
    """Show what a cluster needs for a model, what fits and what binds, without running RTL."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {"json": to_file(json, locals()), "set": set or ()}
    from sim.offline.plan import failures
    from sim.offline.plan_table import plan_tables

    console = Console(stderr=json == "-")
    with SampleCount(console) as progress:
        result = api.plan(**given, progress=progress)
    if json == "-":
        write_json(result, json)
    console.print(plan_tables(result))
    found = failures(result)
    for line in found:
        print(f"sim: {line}", file=sys.stderr)
    raise typer.Exit(1 if found else 0)
