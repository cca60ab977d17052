"""The command ``python -m sim run``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from sim import api
from sim.cli import options as option
from sim.cli.end import conclude
from sim.cli.options import DEFAULT, to_file
from sim.cli.progress import RunBar
from sim.files.outputs import write_json
from sim.files.stop import stoppable

__all__ = ["run"]


def run(
    config: option.Config = None,
    model: option.Model = None,
    cluster: option.Cluster = None,
    nodes: option.Nodes = None,
    samples: option.Samples = None,
    first_sample: Annotated[int, integer_option(
        help="Start at this sample, to go on after a run that was stopped. Samples keep their "
             "numbers; --samples counts the ones left out too.")] = DEFAULT["first_sample"],
    mini_batch: option.MiniBatch = DEFAULT["mini_batch"],
    batching: option.Batching = DEFAULT["batching"],
    window: option.Window = None,
    in_flight: option.InFlight = DEFAULT["in_flight"],
    warmup: Annotated[int, integer_option(
        help="Mini-batches whose latencies are not reported.")] = DEFAULT["warmup"],
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    placement: option.Placement = DEFAULT["placement"],
    copied_rows: Annotated[int, integer_option(
        help="Copy tables of at most this many rows to every node; 0: none.")] =
        DEFAULT["copied_rows"],
    engine: option.Engine = DEFAULT["engine"],
    fidelity: option.Fidelity = DEFAULT["fidelity"],
    threads: option.Threads = DEFAULT["threads"],
    network: option.Network = None,
    gpu: option.Gpu = None,
    pcie: option.Pcie = None,
    mlp: option.Mlp = DEFAULT["mlp"],
    seed: option.Seed = DEFAULT["seed"],
    set: option.Set = None,
    faults: option.Faults = None,
    patience: option.Patience = DEFAULT["patience"],
    skip: option.Skip = True,
    clock_gating: option.ClockGating = True,
    json: option.Json = None,
    predictions: Annotated[str | None, typer.Option(
        help="Write the prediction of each sample to this file (.csv).")] = None,
    picture: option.Picture = None,
    pcap: option.Pcap = None,
    waves: option.Waves = None,
    waves_node: option.WavesNode = None,
    waves_window: option.WavesWindow = None,
) -> None:
    """Run samples through a cluster and check every result bit for bit."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {"json": to_file(json, locals())}
    from sim.run.report import cold, failures, stopped, table

    console = Console(stderr=json == "-")
    lines: list[str] = []
    with stoppable() as stop, RunBar(console) as progress:
        result = api.run(**given, progress=progress, stop=stop, tell=lines.append)
    if json == "-":
        write_json(result, json)
    if (why := cold(result)) is not None:
        print(f"sim: {why}", file=sys.stderr)
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
