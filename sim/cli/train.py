"""The command ``python -m sim train``."""

from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from host.data.datasets import one_or_several
from sim.cli import options as option
from sim.cli.options import DEFAULT
from sim.files.outputs import LiveJson, check_outputs, write_json
from sim.files.stop import kept_by, stoppable
from sim.training.options import TrainOptions

__all__ = ["train"]

_OPTIMIZER = TrainOptions().optimizer


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
        help="Of rows: sgd or rowwise-adagrad.")] = _OPTIMIZER.name,
    learning_rate: Annotated[float, typer.Option(
        help="Of rows and MLPs; the MLPs learn by SGD.")] = _OPTIMIZER.learning_rate,
    epsilon: Annotated[float, typer.Option(
        help="Of row-wise Adagrad.")] = _OPTIMIZER.epsilon,
    epochs: Annotated[int, typer.Option(
        help="How often all samples are gone through.")] = TrainOptions.epochs,
    interval: Annotated[int, typer.Option(
        help="Mini-batches over which loss, accuracy and AUC are taken.")] = TrainOptions.interval,
    checkpoint: Annotated[str | None, typer.Option(
        help="Go on from this file if it is there, and leave the state of training in it: at the "
             "end, when stopped, and every minute.")] = None,
    fidelity: Annotated[str, typer.Option(
        help="rtl: NICs cycle by cycle; model: the numpy reference alone.",
        )] = TrainOptions.fidelity,
    compare: Annotated[bool, typer.Option(
        help="Compare the rows of every step with the numpy reference, bit by bit.")] = True,
    data: option.Data = None,
    format: option.Format = None,
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
    json: option.Json = None,
    pcap: option.Pcap = None,
    waves: option.Waves = None,
    waves_node: option.WavesNode = None,
    waves_window: option.WavesWindow = None,
) -> None:
    """Train a DLRM on a cluster and compare every row that is written, bit for bit."""
    options = TrainOptions.of(
        optimizer=optimizer, learning_rate=learning_rate, epsilon=epsilon, epochs=epochs,
        interval=interval, fidelity=fidelity, checkpoint=checkpoint, compare=compare,
        cluster=cluster, config=config, settings=tuple(set or ()), model=model, nodes=nodes,
        samples=samples, mini_batch=mini_batch, batching=batching, window=window,
        data=one_or_several(data), format=format, placement=placement, engine=engine,
        threads=threads, skip=skip, network=network, pcie=pcie, gpu=gpu, mlp=mlp, seed=seed,
        faults=faults, patience=patience, waves=waves, waves_node=waves_node,
        waves_window=waves_window)
    if checkpoint == "-":
        raise ValueError("checkpoint must be a file, not '-'")
    check_outputs({"json": json, "checkpoint": checkpoint, "pcap": pcap, "waves": waves,
                   "checkpoint's .part": checkpoint and f"{checkpoint}.part"},
                  {"data": data, "model": model, "cluster": cluster, "network": network,
                   "gpu": gpu, "pcie": pcie})
    if pcap == "-":
        raise ValueError("pcap must be a file, not '-'")
    if pcap and fidelity == "model":
        raise ValueError("pcap must go with fidelity rtl, not with model")
    raise typer.Exit(_train(options, json, pcap))


def _train(options: TrainOptions, json_path: str | None, pcap: str | None) -> int:
    from sim.cli.end import conclude
    from sim.run.pcap import PcapFile
    from sim.training.report import failures, interval_line, stopped, table
    from sim.training.train import Training

    console = Console(stderr=json_path == "-")
    setup = Training(options)
    if setup.first_step:
        console.print(f"{options.checkpoint}: going on after step {setup.first_step:,}",
                      highlight=False, soft_wrap=True)
    live = LiveJson(json_path)
    with stoppable() as stop, kept_by(live, json_path), ExitStack() as files, Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("steps, loss {task.fields[loss]:.5f}"), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal) as bar:
        frames = files.enter_context(PcapFile(pcap)) if pcap else None
        task = bar.add_task("training", total=setup.expected_steps, completed=setup.first_step,
                            loss=float("nan"))

        def progress(done: int, loss: float, interval: dict | None) -> None:
            bar.update(task, completed=done, loss=loss)
            if interval is not None:
                console.print(interval_line(interval), highlight=False)

        result = setup.execute(progress, frames, stop=stop, live=live)
        write_json(result, json_path)
    return conclude(console, result, table(result), stop,
                    waves=None if setup.nics is None else setup.nics.setup.waves,
                    stopped=stopped(result), failures=failures(result))
