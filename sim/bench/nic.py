"""Rows of whole NICs in a cluster: throughput and bottleneck."""

from dataclasses import dataclass

from host.timing.network import Network, NetworkProfile
from host.timing.pcie import Pcie, PcieProfile
from host.toml.profile import load_profile
from rtl.formats import BEAT_BYTES
from sim.bench.rows import Job, Progress, Row
from sim.job.options import RunOptions
from sim.run.run import run

__all__ = ["Limit", "limits", "nic_jobs", "throughput_row"]

_SAMPLES = 8192


@dataclass(frozen=True)
class Limit:
    """A resource of a node with a limited rate, and the cycles for which a run kept it busy."""

    name: str
    node: int
    cycles: float


def limits(result: dict) -> list[Limit]:
    """Return how long each link of each node was busy in a run, the busiest first.

    Computed from the counters of the NICs: a packet is a header beat and payload beats, plus the
    profile's overhead bytes on the network.
    """
    options = result["options"]
    pcie = Pcie(load_profile(options["pcie"], PcieProfile))
    network = Network(load_profile(options["network"], NetworkProfile), result["nodes"])
    links = {
        "PCIe to the host": ("host_assembler", pcie.from_nic.cycles_per_byte, 0.0),
        "PCIe from the host": ("host_receiver", pcie.to_nic.cycles_per_byte, 0.0),
        "network out": ("net_assembler", network.cycles_per_byte, network.overhead_cycles),
        "network in": ("net_receiver", network.cycles_per_byte, network.overhead_cycles),
    }
    found = []
    for node, counters in enumerate(result["counters"]):
        for name, (block, cycles_per_byte, overhead) in links.items():
            packets, beats = counters[f"{block}.packets"], counters[f"{block}.beats"]
            found.append(Limit(name, node, packets * overhead
                               + (packets + beats) * BEAT_BYTES * cycles_per_byte))
        # One lookup a cycle passes the dedupe table.
        found.append(Limit("dedupe table", node, counters["dedupe.requests"]))
    return sorted(found, key=lambda limit: -limit.cycles)


def nic_jobs() -> list[Job]:
    """Return the jobs that run whole clusters on the trace."""
    def job(placement: str, what: str) -> Job:
        name = f"NIC, inference, 4 nodes, {what}"

        def rows(progress: Progress) -> list[Row]:
            result = run(RunOptions.of(config="kaggle", nodes=4, samples=_SAMPLES,
                                    placement=placement),
                         lambda done, cycle: progress(f"{done:,} of {_SAMPLES:,} samples"))
            if not result["bit_identical"]:
                raise RuntimeError(f"{name}: results differ from the numpy model: "
                                   f"{result['results']}")
            return [throughput_row(name, result)]
        return Job("nic", name, rows)

    return [job("row", "rows hashed over nodes"), job("even", "whole tables dealt evenly")]


def throughput_row(name: str, result: dict) -> Row:
    """Return the lookups per cycle and node of a run, and the bound of the busiest link."""
    limit = limits(result)[0]
    nodes, cycles = result["nodes"], result["cycles"]
    sent = result["counters"][limit.node]["vector_packager.vectors"] / cycles
    rate = result["lookups"] / (nodes * cycles)
    return Row(name, rate, "lookups/cycle/node", bound=result["lookups"] / (nodes * limit.cycles),
               note=f"{result['samples']:,} samples in {cycles:,} cycles; {limit.name} of node "
                    f"{limit.node} is the bottleneck, busy "
                    f"{100 * limit.cycles / cycles:.1f} % of the time; it sends "
                    f"{sent:.3f} vectors per cycle")
