"""Times of a plan: microseconds per mini-batch of each resource of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from host.dlrm.formats import in_lanes
from host.model import Model
from host.timing.clock import CYCLE_NS
from host.timing.cluster import Cluster, load_cluster
from host.timing.gpu import GpuProfile
from host.timing.network import Network, NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from rtl.config import NicConfig, beats_of, preset
from rtl.formats import RECORDS_PER_BEAT
from sim.job.fit import format_inside
from sim.job.settings import Runtime, apply_settings
from sim.job.workload import Workload, check_cluster
from sim.offline.plan_interaction import InteractionCost
from sim.offline.plan_traffic import Traffic

__all__ = ["PlannedSystem", "resources_of"]


@dataclass(frozen=True)
class PlannedSystem:
    """A cluster with the workload's overrides applied."""

    cluster: Cluster
    config: NicConfig
    runtime: Runtime
    pcie: PcieProfile
    gpu: GpuProfile
    network: NetworkProfile

    @classmethod
    def of(cls, workload: Workload) -> PlannedSystem:
        network = load_profile(workload.network, NetworkProfile, field="network")
        Network(network, workload.nodes)  # raises if there are more nodes than ports
        return cls(load_cluster(workload.cluster or "", check_cluster),
                   *apply_settings(preset(workload.config), list(workload.settings)),
                   load_profile(workload.pcie, PcieProfile, field="pcie"),
                   load_profile(workload.gpu, GpuProfile, field="gpu"), network)

    @property
    def gather_us(self) -> float:
        """Unloaded latency from a request list in the NIC to the first row back in the NIC."""
        return 2 * self.pcie.one_way_us + self.gpu.latency_us + self.gpu.kernel_us


def resources_of(workload: Workload, system: PlannedSystem, model: Model, traffic: Traffic,
                 counts: dict[str, np.ndarray]) -> list[dict]:
    """Return each resource's microseconds per mini-batch at the busiest node.

    ``counts`` are those of ``traffic``, per mini-batch.
    """
    config, pcie, gpu, network = system.config, system.pcie, system.gpu, system.network
    cycle_us, beats = CYCLE_NS / 1000, beats_of(in_lanes(model, workload.wire).width)
    pcie_bytes_us, network_bytes_us = pcie.bandwidth_gb_s * 1e3, network.bandwidth_gbit_s * 125
    row = max(4 * model.width, gpu.access_bytes) / (
        gpu.memory_bandwidth_gb_s * gpu.gather_fraction * 1e3)
    network_us = network.one_way_us if workload.nodes > 1 else 0.0
    found = []

    def add(name: str, at: str, times: Callable[[str], np.ndarray]) -> None:
        node = int(np.argmax(times("full")))
        found.append({"name": name, "rate": at, "node": node,
                      "least_us": float(times("full").max()),
                      "expected_us": float(times("expected").max())})

    for name, way in (("PCIe to NIC", "to_nic"), ("PCIe from NIC", "from_nic")):
        add(name, f"{pcie.bandwidth_gb_s:g} GB/s",
            lambda kind, way=way: counts[f"{kind}_{way}"] / pcie_bytes_us)
    if workload.nodes > 1:
        # With a switch, a node has a single inbound link; a cable carries traffic of its sender.
        ways = [("network out", "out"), ("network in", "in")][:1 + network.switched]
        for name, way in ways:
            add(name, f"{network.bandwidth_gbit_s:g} Gb/s", lambda kind, way=way: (
                counts[f"{kind}_{way}"] + network.overhead_bytes * counts[f"{kind}_{way}_frames"]
            ) / network_bytes_us)
    if "indices" in counts:
        add("NIC repeats", "1 slot a cycle", lambda kind: counts["indices"] * cycle_us)
    add("NIC lookups", "1 a cycle", lambda kind: counts["lookups"] * cycle_us)
    add("NIC vectors out", "1 beat a cycle", lambda kind: counts["lookups"] * beats * cycle_us)
    bags = "bags_in" in counts
    if bags:
        add("NIC bags", "1 segment a cycle", lambda kind: np.maximum(
            counts["bag_segments_out"], counts["bag_segments_in"]) * cycle_us)
        add("NIC vectors of bags", "1 beat a cycle",
            lambda kind: counts["bag_beats_in"] * cycle_us)
    pooled = beats_of(in_lanes(model, format_inside(workload.wire, system.runtime)).width)
    add("NIC pooling", "1 beat a cycle", lambda kind: counts["slots"] * pooled * cycle_us)
    if system.runtime.interaction:
        cycles = InteractionCost.of(config, model).cycles
        add("NIC interaction", f"{cycles} cycles a sample",
            lambda kind: counts["samples"] * cycles * cycle_us)
    add("GPU gather", f"{gpu.memory_bandwidth_gb_s:g} GB/s",
        lambda kind: counts["misses"] * row + (
            gpu.cycles_of_bags(counts["gathered_keys"], counts["gathered_bags"], 4 * model.width,
                               counts["gathered_weights"])
            * cycle_us if "gathered_keys" in counts else 0))
    # By Little's law: places occupied, and the time for which each is occupied.
    add("misses in flight", f"{config.misses_in_flight:,} a gather",
        lambda kind: counts["misses"] * system.gather_us / config.misses_in_flight)
    pooled_us = 2 * network_us + system.gather_us
    add("hold buffer", f"{config.hold_vectors:,} places",
        lambda kind: (counts["remote"] * 2 * network_us + (
            counts["bags_out"] * pooled_us if bags else 0)) / config.hold_vectors)
    if bags:
        add("bags in flight", f"{config.owner_bags:,} a round trip", lambda kind: np.maximum(
            counts["bags_out"] * pooled_us, counts["bags_in"] * system.gather_us)
            / config.owner_bags)
        share = config.owner_bag_beats // workload.nodes
        window = workload.nodes * (share - share // 8)
        add("bag credit", f"{window:,} beats a round trip", lambda kind: pooled_us / window * (
            counts["bag_segments_in"] - (1 - 1 / RECORDS_PER_BEAT) * counts["bags_in"]))
    # To the NIC, to the owner and its GPU and back, to the host; then the hand-out of the next. A
    # flush before the word of a step is one more round trip.
    flush = system.runtime.completions and system.runtime.completion_flush
    trip = (6 if flush else 4) * pcie.one_way_us + network_us + (
        traffic.with_remote * 2 * network_us + traffic.with_misses * system.gather_us
    ) / traffic.batches
    add("mini-batches in flight", f"{workload.in_flight:,} a round trip",
        lambda kind: np.full(workload.nodes, trip / workload.in_flight))
    return found
