"""The commands of ``python -m sim``: a thin skin on functions that return dictionaries."""

import sys
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gen.signals import Interrupted, interruptible
from host.data.datasets import one_or_several
from sim.cli import options as option
from sim.cli.batching import batching
from sim.cli.bench import bench
from sim.cli.datasets import datasets
from sim.cli.hitrate import hitrate
from sim.cli.options import DEFAULT
from sim.cli.plan import plan
from sim.cli.reproduce import reproduce
from sim.cli.train import train
from sim.engines import BuildError
from sim.files.outputs import LiveJson, check_outputs, check_part, check_picture, write_json
from sim.files.stop import kept_by, stoppable
from sim.job.options import RunOptions
from sim.run.predictions import PredictionFile, check_predictions

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Run clusters of EmberNIC SmartNICs cycle by cycle.")

@app.callback()
def _commands() -> None:
    """Run clusters of EmberNIC SmartNICs cycle by cycle."""


@app.command()
def run(
    config: option.Config = None,
    model: option.Model = None,
    cluster: option.Cluster = None,
    nodes: option.Nodes = None,
    samples: option.Samples = None,
    first_sample: Annotated[int, typer.Option(
        help="Leave out the samples before this one, which --samples counts too; the others keep "
             "their numbers. Goes on after a run that was stopped.")] = DEFAULT["first_sample"],
    mini_batch: option.MiniBatch = DEFAULT["mini_batch"],
    batching: option.Batching = DEFAULT["batching"],
    window: option.Window = None,
    in_flight: Annotated[int, typer.Option(
        help="Mini-batches under way at once.")] = DEFAULT["in_flight"],
    warmup: Annotated[int, typer.Option(
        help="Mini-batches left out of the latencies.")] = DEFAULT["warmup"],
    data: option.Data = None,
    format: option.Format = None,
    placement: option.Placement = DEFAULT["placement"],
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
    json: option.Json = None,
    predictions: Annotated[str | None, typer.Option(
        help="Write the prediction of each sample to this file (.csv).")] = None,
    picture: Annotated[str | None, typer.Option(
        help="Draw the results to this file (.png, .svg, .pdf).")] = None,
    pcap: option.Pcap = None,
    waves: option.Waves = None,
    waves_node: option.WavesNode = None,
    waves_window: option.WavesWindow = None,
) -> None:
    """Run samples through a cluster and check every result bit for bit."""
    options = RunOptions.of(
        cluster=cluster, config=config, settings=tuple(set or ()), model=model, nodes=nodes,
        samples=samples, first_sample=first_sample, mini_batch=mini_batch, in_flight=in_flight,
        warmup=warmup, batching=batching, window=window, data=one_or_several(data), format=format,
        placement=placement, engine=engine, fidelity=fidelity, threads=threads, skip=skip,
        network=network, pcie=pcie, gpu=gpu, mlp=mlp, seed=seed, faults=faults, patience=patience,
        waves=waves, waves_node=waves_node, waves_window=waves_window)
    check_predictions(predictions)
    check_picture(picture)
    check_outputs({"json": json, "predictions": predictions, "picture": picture, "pcap": pcap,
                   "waves": waves},
                  {"data": data, "model": model, "cluster": cluster, "network": network,
                   "gpu": gpu, "pcie": pcie})
    check_part(json, first_sample)
    if pcap == "-":
        raise ValueError("pcap must be a file, not '-'")
    if fidelity == "model":
        for name, given in (("pcap", pcap), ("predictions", predictions)):
            if given is not None:
                raise ValueError(f"{name} must go with fidelity rtl, not with model, which has no "
                                 f"values")
    raise typer.Exit(_run(options, json, picture, pcap, predictions))


app.command()(train)
app.command()(bench)
app.command()(hitrate)
app.command()(batching)
app.command()(plan)
app.command()(reproduce)
app.add_typer(datasets, name="datasets")


def _run(options: RunOptions, json_path: str | None, picture: str | None,
         pcap: str | None, predictions: str | None) -> int:
    from sim.cli.end import conclude
    from sim.run.pcap import PcapFile
    from sim.run.picture import draw_run
    from sim.run.report import cold, failures, stopped, table
    from sim.run.run import Run

    console = Console(stderr=json_path == "-")
    setup = Run(options)
    total = setup.expected_samples
    live = LiveJson(json_path)
    with stoppable() as stop, kept_by(live, json_path), ExitStack() as files, Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("samples, cycle {task.fields[cycle]:,}"), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal) as bar:
        # Not before the run is set up: a mistake found there leaves an older file alone.
        sink = files.enter_context(PredictionFile(
            predictions, options.first_sample, lambda: setup.prediction_before)
        ) if predictions else None
        frames = files.enter_context(PcapFile(pcap)) if pcap else None
        task = bar.add_task("running", total=total, cycle=0)
        lines = _LogLines(console, total)

        def progress(done: int, cycle: int) -> None:
            bar.update(task, completed=done, cycle=cycle)
            lines(done, cycle)

        result = setup.execute(progress, frames, stop=stop, live=live, predictions=sink)
        write_json(result, json_path)
    if (why := cold(result)) is not None:
        print(f"sim: {why}", file=sys.stderr)
    how = stopped(result)
    if how is None and picture:
        draw_run(result, picture)
    return conclude(console, result, table(result), stop, waves=setup.waves, stopped=how,
                    failures=failures(result))


class _LogLines:
    """A line at every tenth of the work where no progress bar can be shown."""

    def __init__(self, console: Console, total: int | None):
        self._console = console
        self._step = None if console.is_terminal or not total else max(1, total // 10)
        self._next = self._step or 0

    def __call__(self, done: int, cycle: int) -> None:
        if self._step is not None and done >= self._next:
            self._console.print(f"{done:,} samples, cycle {cycle:,}", highlight=False)
            self._next = (done // self._step + 1) * self._step


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one line on standard error and exit status 2.

    A signal that asks to end is exit status 128 and its number, 130 for Ctrl-C.
    """
    try:
        with interruptible():
            # Without its standalone mode, click returns the status of an Exit, raising nothing.
            status = app(args=arguments, prog_name="sim", standalone_mode=False)
    except Interrupted as error:
        print("; ".join((f"sim: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
        sys.exit(error.status)
    except (ValueError, TypeError, OSError, BuildError) as error:
        _complain(str(error))
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own complaints about the command line
            _complain(error.format_message())
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> None:
    print(f"sim: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
