"""The command ``python -m sim hitrate``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from rtl.config import POLICY_CODES
from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT, integers, to_file
from sim.cli.progress import SampleCount
from sim.files.outputs import write_json
from sim.files.stop import stoppable

__all__ = ["hitrate"]


def hitrate(
    sizes: Annotated[str | None, typer.Option(
        help="Rows of a node's cache, several with commas between; 0 is off. "
             "Default: a quarter to four times the rows of the NIC's cache.")] = None,
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    model: option.Model = None,
    policy: Annotated[str, typer.Option(
        help=f"Replacement policies, with commas between: {', '.join(POLICY_CODES)}.")] = "lru",
    ways: Annotated[int | None, integer_option(
        help="Ways of a set; 0 is fully associative. Default: those of the NIC.")] = None,
    config: Annotated[str | None, typer.Option(
        help="NIC preset that sizes and ways are taken from.",
        show_default=DEFAULT["config"])] = None,
    cluster: option.Cluster = None,
    nodes: option.Nodes = None,
    placement: option.Placement = DEFAULT["placement"],
    mini_batch: option.MiniBatch = DEFAULT["mini_batch"],
    samples: option.Samples = None,
    warmup: option.CacheWarmup = DEFAULT["warmup"],
    seed: option.SampleSeed = DEFAULT["seed"],
    json: option.Json = None,
    picture: option.Picture = None,
) -> None:
    """Show the hit rate of the local cache by its size, without running RTL."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {"json": to_file(json, locals()), "sizes": integers(sizes, "sizes"),
                        "policy": [name.strip() for name in policy.split(",")]}
    from sim.offline.hitrate import hitrate_stopped, hitrate_table

    console = Console(stderr=json == "-")
    with stoppable() as stop, SampleCount(console) as progress:
        result = api.hitrate(**given, progress=progress, stop=stop)
    if json == "-":
        write_json(result, json)
    console.print(hitrate_table(result))
    if (said := hitrate_stopped(result)) is not None:
        print(f"sim: {said}", file=sys.stderr)
        raise typer.Exit(stop.status or 1)
