"""The command ``python -m sim train``."""

from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option, number_option
from sim import api
from sim.cli import options as option
from sim.cli.end import conclude
from sim.cli.options import DEFAULT, to_file
from sim.cli.progress import TrainBar
from sim.files.outputs import write_json
from sim.files.stop import stoppable
from sim.training.options import Learning, Method, Record

__all__ = ["train"]

_OPTIMIZER = Learning().optimizer


def train(
    config: option.Config = None,
    model: option.Model = None,
    cluster: option.Cluster = None,
    nodes: option.Nodes = None,
    samples: option.Samples = None,
    mini_batch: option.MiniBatch = DEFAULT["mini_batch"],
    batching: option.Batching = DEFAULT["batching"],
    window: option.Window = None,
    optimizer: Annotated[str, typer.Option(
        help="Optimizer of the rows: sgd or rowwise-adagrad.")] = _OPTIMIZER.name,
    learning_rate: Annotated[float, number_option(
        help="Learning rate of rows and MLPs; the MLPs learn by SGD.")] = _OPTIMIZER.learning_rate,
    epsilon: Annotated[float, number_option(
        help="Epsilon of row-wise Adagrad.")] = _OPTIMIZER.epsilon,
    epochs: Annotated[int, integer_option(
        help="Passes over all samples.")] = Learning.epochs,
    interval: Annotated[int, integer_option(
        help="Mini-batches per report of loss, accuracy and AUC.")] = Record.interval,
    checkpoint: Annotated[str | None, typer.Option(
        help="Go on from this file if it exists, and save the state of the training to it: at the "
             "end, when stopped, and every minute.")] = None,
    fidelity: Annotated[str, typer.Option(
        help="rtl: NICs cycle by cycle; model: the numpy reference alone.",
        )] = Method.fidelity,
    compare: Annotated[bool, typer.Option(
        help="Compare the rows of every step with the numpy reference, bit for bit.")] = True,
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    placement: option.Placement = DEFAULT["placement"],
    engine: option.Engine = DEFAULT["engine"],
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
    pcap: option.Pcap = None,
    waves: option.Waves = None,
    waves_node: option.WavesNode = None,
    waves_window: option.WavesWindow = None,
) -> None:
    """Train a DLRM on a cluster and compare every row that is written, bit for bit."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {"json": to_file(json, locals())}
    from sim.training.report import failures, stopped, table

    console = Console(stderr=json == "-")
    lines: list[str] = []
    with stoppable() as stop, TrainBar(console, checkpoint) as progress:
        result = api.train(**given, progress=progress, stop=stop, tell=lines.append)
    if json == "-":
        write_json(result, json)
    raise typer.Exit(conclude(console, result, table(result), lines, stop,
                              stopped=stopped(result), failures=failures(result)))
