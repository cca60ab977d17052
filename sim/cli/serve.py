"""The command ``python -m sim serve``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option, number, number_option
from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT, integers, to_file
from sim.cli.progress import PointBar
from sim.files.outputs import write_json

__all__ = ["serve"]


def serve(
    qps: Annotated[str, typer.Option(
        help="Requests a second, of all nodes; several with commas between. auto: 1,000 to what "
             "the fastest system serves.")] = "auto",
    slo: Annotated[str, typer.Option(
        help="Bounds on the 99th percentile of a request's latency, with commas "
             "between.")] = "50us,100us,1ms,5ms",
    system: Annotated[str | None, typer.Option(
        help="Systems, with commas between.", show_default="cpu-mpi,bl-paper,bl-tuned,fs")] = None,
    model: Annotated[str | None, typer.Option(
        help="DLRM and data set: kaggle, terabyte or avazu.", show_default="kaggle")] = None,
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    nodes: Annotated[int, integer_option(help="Nodes of the cluster.")] = 4,
    software: Annotated[str, typer.Option(
        help="Software profile of all systems: eager or tuned.")] = "eager",
    gpu: Annotated[str, typer.Option(help="GPU profile.")] = DEFAULT["gpu"],
    fidelity: Annotated[str, typer.Option(
        help="Fidelity of the NICs: model, or rtl, which takes hours.")] = "model",
    sizes: Annotated[str, typer.Option(
        help="Mini-batches that a system chooses from, in samples over all nodes, with commas "
             "between.")] = "1,8,32,128,512,2048",
    in_flight: option.InFlight = 16,
    arrivals: Annotated[str, typer.Option(
        help="How requests come: poisson, or bursts.")] = "poisson",
    burst_rate: Annotated[float, number_option(
        help="Arrivals in a burst, as a multiple of the mean rate.")] = 4.0,
    burst_share: Annotated[float, number_option(help="Share of the time in bursts.")] = 0.1,
    burst_length: Annotated[str, typer.Option(help="Mean length of a burst.")] = "1ms",
    requests: Annotated[int, integer_option(
        help="Requests that count in a run, at least. Mini-batches are at least a twentieth of "
             "them.")] = 20_000,
    seed: Annotated[int, integer_option(help="Seed of all random numbers.")] = DEFAULT["seed"],
    jobs: Annotated[int | None, integer_option(
        help="Parts of the work done at once.", show_default="processors")] = None,
    points: Annotated[str | None, typer.Option(
        help="Folder that keeps finished parts; the same command goes on from them.")] = None,
    json: option.Json = None,
    picture: option.Picture = None,
) -> None:
    """Show latency under load, and what each system serves within a p99."""
    # The parameters are the options by their names in the API: nothing may be assigned before.
    given = locals() | {
        "json": to_file(json, locals()), "sizes": integers(sizes, "sizes"),
        "qps": None if qps == "auto" else _numbers(qps),
        "slo": _list(slo), "system": None if system is None else _list(system)}
    from sim.serving.table import serve_tables

    console = Console(stderr=json == "-")
    with PointBar(console) as progress:
        result = api.serve(**given, progress=progress)
    if json == "-":
        write_json(result, json)
    for table in serve_tables(result):
        console.print(table)
    for note in result["notes"]:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    for failed in result["failed"]:
        print(f"sim: {failed['what']}: {failed['error']}", file=sys.stderr)
    raise typer.Exit(1 if result["failed"] else 0)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    try:
        return [number(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"qps must be auto or numbers with commas between, not {text!r}") from None
