"""Options that several commands of ``python -m sim`` have, their defaults and their help."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gen.base.numbers import integer, integer_option
from sim.files.outputs import check_apart
from sim.job.option import given_options
from sim.job.options import RunArguments

__all__ = [
    "DEFAULT", "CacheWarmup", "Cluster", "ConfigOfCluster", "Data", "Engine", "Format",
    "GpuOfCluster", "InFlight", "Index", "Json", "MiniBatch", "Model", "NetworkOfCluster", "Nodes",
    "NodesOfCluster", "PcieOfCluster", "Picture", "Placement", "SampleSeed", "Samples", "Set",
    "Threads", "Window", "integers", "to_file",
]

DEFAULT = {each.name: each.default for each in given_options(RunArguments)}

_FROM_CLUSTER = "that of the cluster"

_HELP = {each.name: each.option.help for each in given_options(RunArguments)}

ConfigOfCluster = Annotated[str | None, typer.Option(
    help=_HELP["config"], show_default=_FROM_CLUSTER)]
Model = Annotated[str | None, typer.Option(help=_HELP["model"])]
Cluster = Annotated[str | None, typer.Option(help=_HELP["cluster"])]
Nodes = Annotated[int | None, integer_option(
    help=_HELP["nodes"], show_default=str(DEFAULT["nodes"]))]
NodesOfCluster = Annotated[int | None, integer_option(
    help=_HELP["nodes"], show_default=_FROM_CLUSTER)]
Samples = Annotated[int | None, integer_option(help=_HELP["samples"])]
MiniBatch = Annotated[int, integer_option(help=_HELP["mini_batch"])]
InFlight = Annotated[int, integer_option(help=_HELP["in_flight"])]
CacheWarmup = Annotated[int, integer_option(
    help="Mini-batches that fill the caches before anything is counted.")]
Window = Annotated[int | None, integer_option(
    help=_HELP["window"], show_default="16 mini-batches")]
Data = Annotated[list[str] | None, typer.Option(help=_HELP["data"])]
Format = Annotated[str | None, typer.Option(help=_HELP["format"])]
Index = Annotated[str, typer.Option(help=_HELP["index"])]
Placement = Annotated[str, typer.Option(help=_HELP["placement"])]
Engine = Annotated[str, typer.Option(help=_HELP["engine"])]
Threads = Annotated[int, integer_option(help=_HELP["threads"])]
NetworkOfCluster = Annotated[str | None, typer.Option(
    help=_HELP["network"], show_default=_FROM_CLUSTER)]
GpuOfCluster = Annotated[str | None, typer.Option(help=_HELP["gpu"], show_default=_FROM_CLUSTER)]
PcieOfCluster = Annotated[str | None, typer.Option(
    help=_HELP["pcie"], show_default=_FROM_CLUSTER)]
SampleSeed = Annotated[int, integer_option(help="Seed of the generated samples.")]
Set = Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUE", help=_HELP["set"])]
Json = Annotated[str | None, typer.Option(help=_HELP["json"])]
Picture = Annotated[str | None, typer.Option(help=_HELP["picture"])]


def integers(text: str | None, field: str) -> list[int] | None:
    """Return the integers of an option that lists them with commas between; None without it."""
    if text is None:
        return None
    try:
        return [integer(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{field} must be integers with commas between, not {text!r}") from None


def to_file(path: str | None, given: Mapping[str, Any]) -> str | None:
    """Return ``path`` unless it is ``-``: the command line itself writes to standard output.

    ``ValueError`` where standard output is closed, or a file that another option ``given`` names.
    """
    if path != "-":
        return path
    if sys.stdout is None:
        raise ValueError("json must be a file, not '-': standard output is closed")
    outputs, inputs = ({name: given.get(name) for name in names} for names in (_WRITTEN, _READ))
    check_apart({"json": path} | outputs, inputs)
    return None


_WRITTEN = ("predictions", "picture", "pcap", "waves", "checkpoint")
_READ = ("data", "files", "model", "cluster", "network", "gpu", "pcie", "faults")
