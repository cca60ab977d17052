"""Options that several commands of ``python -m sim`` have, their defaults and their help."""

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import typer

from gen.base.numbers import integer, integer_option
from host.data.datasets import DATA_HELP, FORMAT_HELP
from host.data.indexing import INDEX_HELP
from host.placement.deal import PLACEMENTS
from sim.engines.waves import WINDOW
from sim.files.outputs import check_apart
from sim.job.placing import MEASURED
from sim.job.simulation import Simulation
from sim.job.workload import Workload

__all__ = [
    "DEFAULT", "Batching", "CacheWarmup", "ClockGating", "Cluster", "Config", "ConfigOfCluster",
    "Data", "Engine", "Faults", "Fidelity", "Format", "Gpu", "GpuOfCluster", "InFlight", "Index",
    "Json", "MiniBatch", "Mlp", "Model", "Network", "NetworkOfCluster", "Nodes", "NodesOfCluster",
    "Patience", "Pcap", "Pcie", "PcieOfCluster", "Picture", "Placement", "SampleSeed",
    "Samples", "Seed", "Set", "Skip", "Threads", "Waves", "WavesNode", "WavesWindow", "Window",
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
Batching = Annotated[str, typer.Option(
    help="How mini-batches are formed from the samples of a window. file: in the order of the "
         "file; sort: in sorted order; greedy: finds the most keys in common; graph: faster than "
         "greedy; graph-printed: the graph algorithm as the paper prints it.")]
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
Fidelity = Annotated[str, typer.Option(
    help="rtl: run the RTL of the NICs; model: count and time with a model of them, which "
         "computes no values.")]
Threads = Annotated[int, integer_option(help="Nodes to simulate at once.")]
Network = Annotated[str | None, typer.Option(
    help=_PROFILE.format("Network"), show_default=DEFAULT["network"])]
NetworkOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("Network"), show_default=_FROM_CLUSTER)]
Gpu = Annotated[str | None, typer.Option(
    help=_PROFILE.format("GPU"), show_default=DEFAULT["gpu"])]
GpuOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("GPU"), show_default=_FROM_CLUSTER)]
Pcie = Annotated[str | None, typer.Option(
    help=_PROFILE.format("PCIe"), show_default=DEFAULT["pcie"])]
PcieOfCluster = Annotated[str | None, typer.Option(
    help=_PROFILE.format("PCIe"), show_default=_FROM_CLUSTER)]
Mlp = Annotated[str, typer.Option(
    help="How the MLPs are computed. fixed: the same bits on every machine; blas: faster.")]
Seed = Annotated[int, integer_option(help=_SEED.format("rows, weights and generated samples"))]
SampleSeed = Annotated[int, integer_option(help=_SEED.format("generated samples"))]
Set = Annotated[list[str] | None, typer.Option(
    metavar="FIELD=VALUE",
    help="Change a field of the NIC's configuration, or a register; may be repeated.")]
Faults = Annotated[str | None, typer.Option(
    metavar="FAULT,...|FILE",
    help="Let a part (host, gpu, network) of one node, or of every node, fall silent: "
         "silent-PART=START:LENGTH[@NODE]; or frames between NICs be lost, changed or late: "
         "KIND[-OPCODE]=RATE or #N[:TIME][@LINK], KIND being drop, duplicate, reorder, corrupt, "
         "delay; or links be down: down=START:LENGTH[@LINK]. For example "
         "silent-gpu=20us:1ms@2,drop-vectors=1e-3@0>1. Or a file: TOML, or the JSON of a run, "
         "whose faults it repeats.")]
Patience = Annotated[int, integer_option(
    help="Give up after this many cycles in which no beat moves anywhere, or, with what the "
         "configuration may need added, no result gets on.")]
Skip = Annotated[bool, typer.Option(
    help="Skip cycles in which nothing moves; results stay the same.")]
ClockGating = Annotated[bool, typer.Option(
    "--clock-gating/--no-clock-gating",
    help="Stop the clocks of idle blocks in the compiled model; results stay the same.")]
Json = Annotated[str | None, typer.Option(
    help="Write the results to this file; - is standard output.")]
Picture = Annotated[str | None, typer.Option(
    help="Draw the results to this file (.png, .svg, .pdf).")]
Pcap = Annotated[str | None, typer.Option(
    help="Write every frame between the nodes to this file, for Wireshark.")]
Waves = Annotated[str | None, typer.Option(
    help="Write the signals of one NIC to this file (.fst, .vcd), for GTKWave or Surfer.")]
WavesNode = Annotated[int | None, integer_option(
    help="Node whose signals are written.", show_default="0")]
WavesWindow = Annotated[str | None, typer.Option(
    metavar="FIRST:LAST", help="Cycles whose signals are written, both included.",
    show_default=f"{WINDOW:,} cycles from the first samples")]


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
