"""Options that several commands of ``python -m sim`` have, their defaults and their help."""

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import typer

from gen.numbers import integer, integer_option
from host.data.datasets import DATA_HELP, FORMAT_HELP
from host.data.indexing import INDEX_HELP
from host.placement.deal import PLACEMENTS
from sim.files.outputs import check_apart
from sim.job.simulation import Simulation
from sim.job.workload import MEASURED, Workload

__all__ = [
    "DEFAULT", "CacheWarmup", "Cluster", "Config", "ConfigOfCluster",
    "Data", "Engine", "Format", "GpuOfCluster", "InFlight", "Index",
    "Json", "MiniBatch", "Model", "NetworkOfCluster", "Nodes", "NodesOfCluster",
    "PcieOfCluster", "Picture", "Placement", "SampleSeed",
    "Samples", "Set", "Threads", "Window",
    "integers", "to_file",
]

DEFAULT = {field.name: field.default for part in (Workload, Simulation) for field in fields(part)}

_FROM_CLUSTER = "that of the cluster"

_CONFIG = "NIC preset; replaces the NIC of --cluster."
_NODES = "Nodes of the cluster."
_SEED = "Seed of the {}."
_PROFILE = "{} profile: its name or a TOML file."

Config = Annotated[str | None, typer.Option(help=_CONFIG, show_default=DEFAULT["config"])]
ConfigOfCluster = Annotated[str | None, typer.Option(help=_CONFIG, show_default=_FROM_CLUSTER)]
Model = Annotated[str | None, typer.Option(help="DLRM: a preset or a TOML file.")]
Cluster = Annotated[str | None, typer.Option(
    help="Nodes, links and NIC: a preset or a TOML file. Other options override it.")]
Nodes = Annotated[int | None, integer_option(help=_NODES, show_default=str(DEFAULT["nodes"]))]
NodesOfCluster = Annotated[int | None, integer_option(help=_NODES, show_default=_FROM_CLUSTER)]
Samples = Annotated[int | None, integer_option(
    help="Samples to read. Default: all samples of a file, or 1,024 generated samples.")]
MiniBatch = Annotated[int, integer_option(help="Samples of a mini-batch, over all nodes.")]
InFlight = Annotated[int, integer_option(help="Mini-batches in flight at once.")]
CacheWarmup = Annotated[int, integer_option(
    help="Mini-batches that fill the caches before anything is counted.")]
Window = Annotated[int | None, integer_option(
    help="Samples that are loaded before mini-batches are formed from them.",
    show_default="16 mini-batches")]
Data = Annotated[list[str] | None, typer.Option(help=DATA_HELP)]
Format = Annotated[str | None, typer.Option(help=FORMAT_HELP)]
Index = Annotated[str, typer.Option(help=INDEX_HELP)]
Placement = Annotated[str, typer.Option(
    help=f"Where rows are held. {'; '.join(': '.join(item) for item in PLACEMENTS.items())}. "
         f"Lookups are counted in the first {MEASURED:,} samples; of a pipe, which can be read "
         f"only once, the model's bags count. Where nodes exceed tables, rows are hashed.")]
Engine = Annotated[str, typer.Option(
    help="RTL simulator: verilator, cxxrtl or pysim. All give the same results, at different "
         "speeds.")]
Threads = Annotated[int, integer_option(help="Nodes to simulate at once.")]
NetworkOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("Network"), show_default=_FROM_CLUSTER)]
GpuOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("GPU"), show_default=_FROM_CLUSTER)]
PcieOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("PCIe"), show_default=_FROM_CLUSTER)]
SampleSeed = Annotated[int, integer_option(help=_SEED.format("generated samples"))]
Set = Annotated[list[str] | None, typer.Option(
    metavar="FIELD=VALUE",
    help="Change a field of the NIC's configuration, or a register; may be repeated.")]
Json = Annotated[str | None, typer.Option(
    help="Write the results to this file; - is standard output.")]
Picture = Annotated[str | None, typer.Option(
    help="Draw the results to this file (.png, .svg, .pdf).")]


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
