"""Options that several commands of ``python -m sim`` have, and their words."""

from dataclasses import fields
from typing import Annotated

import typer

from host.data.datasets import DATA_HELP, FORMAT_HELP
from sim.engines.waves import WINDOW
from sim.job.options import RunOptions

__all__ = [
    "DEFAULT", "Batching", "ClockGating", "Cluster", "Config", "Data", "Engine", "Faults",
    "Fidelity", "Format", "Gpu", "Json", "MiniBatch", "Mlp", "Model", "Network", "Nodes",
    "Patience", "Pcap", "Pcie", "Placement", "Samples", "Seed", "Set", "Skip", "Threads", "Waves",
    "WavesNode", "WavesWindow", "Window",
]

DEFAULT = {field.name: field.default for field in fields(RunOptions)}

Config = Annotated[str | None, typer.Option(
    help="Preset of the NIC; replaces the NIC of --cluster.", show_default=DEFAULT["config"])]
Model = Annotated[str | None, typer.Option(help="DLRM: a preset or a TOML file.")]
Cluster = Annotated[str | None, typer.Option(
    help="Nodes, links and NIC: a preset or a TOML file. Other options go before it.")]
Nodes = Annotated[int | None, typer.Option(
    help="Nodes of the cluster.", show_default=str(DEFAULT["nodes"]))]
Samples = Annotated[int | None, typer.Option(
    help="Samples to run; default all of a file, 1,024 of the generator.")]
MiniBatch = Annotated[int, typer.Option(help="Samples of a mini-batch, over all nodes.")]
Batching = Annotated[str, typer.Option(
    help="How mini-batches are formed of the samples of a window: file, in their order; sort; "
         "greedy, which finds most in common; graph, faster; graph-printed, as the paper has it.")]
Window = Annotated[int | None, typer.Option(
    help="Samples that are loaded before mini-batches are formed of them.",
    show_default="16 mini-batches")]
Data = Annotated[list[str] | None, typer.Option(help=DATA_HELP)]
Format = Annotated[str | None, typer.Option(help=FORMAT_HELP)]
Placement = Annotated[str, typer.Option(help="table: whole tables; row: rows hashed over nodes.")]
Engine = Annotated[str, typer.Option(
    help="verilator, cxxrtl or pysim: one result, three speeds.")]
Fidelity = Annotated[str, typer.Option(
    help="rtl: the NICs' RTL runs; model: they are counted and timed without it, and results "
         "have no values.")]
Threads = Annotated[int, typer.Option(help="Nodes run at once.")]
Network = Annotated[str | None, typer.Option(
    help="Network profile: its name or a TOML file.", show_default=DEFAULT["network"])]
Gpu = Annotated[str | None, typer.Option(
    help="GPU profile: its name or a TOML file.", show_default=DEFAULT["gpu"])]
Pcie = Annotated[str | None, typer.Option(
    help="PCIe profile: its name or a TOML file.", show_default=DEFAULT["pcie"])]
Mlp = Annotated[str, typer.Option(help="fixed: the same bits everywhere; blas: faster.")]
Seed = Annotated[int, typer.Option(help="Of rows, weights and generated samples.")]
Set = Annotated[list[str] | None, typer.Option(
    help="field=value of the NIC's configuration or registers; may be repeated.")]
Faults = Annotated[str | None, typer.Option(
    metavar="silent-PART=START:LENGTH[@NODE],...",
    help="Let a part (host, gpu, network) of each node, or of one, fall silent, such as "
         "silent-gpu=20us:1ms@2: from 20 us after the first samples on, for 1 ms; without "
         "LENGTH for good.")]
Patience = Annotated[int, typer.Option(
    help="Cycles without a beat moving anywhere after which the run is given up.")]
Skip = Annotated[bool, typer.Option(
    help="Skip cycles in which nothing moves; changes no result.")]
ClockGating = Annotated[bool, typer.Option(
    "--clock-gating/--no-clock-gating",
    help="Let blocks of training stand while they are idle, with verilator; changes no result.")]
Json = Annotated[str | None, typer.Option(
    help="Write the results to this file; - is standard output.")]
Pcap = Annotated[str | None, typer.Option(
    help="Write every frame between the nodes to this file, for Wireshark.")]
Waves = Annotated[str | None, typer.Option(
    help="Write the signals of one NIC to this file (.fst, .vcd), for GTKWave or Surfer.")]
WavesNode = Annotated[int | None, typer.Option(help="Node of the waves.", show_default="0")]
WavesWindow = Annotated[str | None, typer.Option(
    metavar="FIRST:LAST", help="Cycles of the waves, both included.",
    show_default=f"{WINDOW:,} from the first samples on")]
