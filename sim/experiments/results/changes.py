"""Changes that apply to both sides of a row. To add a change, add a line to `CHANGES`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from host.systems.devices import SMARTNIC_LINK
from sim.evaluation.point import Point
from sim.evaluation.systems import fixed_for
from sim.experiments.sensitivity.kinds import Kind
from sim.experiments.sensitivity.spread import scaled_by

__all__ = ["CHANGES", "FAIR", "SAMPLES", "UNFAIR", "UNMODELLED", "Change"]

FAIR, UNFAIR, UNMODELLED, SAMPLES = "fair", "unfair", "unmodelled", "samples"
"""Kinds of changes. Fair: a cluster may be like that. Unfair: it contradicts a measurement, or
charges a GPU for the SmartNIC. Unmodelled: a cost that the models miss, as large as the checks show
it. Samples: other draws of the generator."""


@dataclass(frozen=True)
class Change:
    """A change that every system gets.

    Members
    -------
    name: text of the tables. kind: kind of the change.
    fixed: ``name=value`` of searched options; a system without the option ignores it.
    fields: fields of the cluster that change, such as ``wire``.
    scaled: factors of constants, by ``profile.constant``; the profile is a field of the cluster:
        ``software``, ``gpu`` or ``network``.
    missed: constants, named in the same way, that take the factor of their checks: times of
        microseconds are multiplied by it, and rates are divided.
    seeds: added to the seed of generated samples.
    kept: whether EN keeps its placement and the options of its NICs; otherwise all systems search
        all of their options.
    """

    name: str
    fixed: Sequence[str] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    scaled: Mapping[str, float] = field(default_factory=dict)
    missed: Kind | None = None
    seeds: int = 0
    kept: bool = False
    kind: str = FAIR

    @property
    def factor(self) -> float | None:
        """Factor of the checks; None for a change without checks."""
        return self.missed and self.missed.short

    def applies(self, point: Point) -> bool:
        """Return whether the change applies to the samples of a point: files have no seed."""
        return not (self.seeds and point.workload.data)

    def of(self, point: Point) -> Point:
        """Return a point with the change; the point itself if its system ignores the change."""
        fixed = fixed_for(point.kind.name, self.fixed)
        changed = point.changed(fixed=(*point.system.fixed, *fixed), **self.fields,
                                seed=point.workload.seed + self.seeds)
        return scaled_by(changed, [(_profile(point, path), factor)
                                   for path, factor in self._factors().items()])

    def _factors(self) -> dict[str, float]:
        found = dict(self.scaled)
        if self.missed is not None:
            found |= {path: self.missed.short if path.endswith("_us") else 1 / self.missed.short
                      for path in self.missed.constants}
        return found


def _profile(point: Point, path: str) -> str:
    """Return ``profile.constant`` with the profile of a point's cluster."""
    part, _, constant = path.partition(".")
    name = getattr(point.cluster, part)
    return f"{'software_' * (part == 'software')}{name}.{constant}"


CHANGES = (
    Change("one host thread", ("threads=1",)),
    Change("one NCCL communicator", ("communicators=1",)),
    Change("a collective for each mini-batch", ("one_collective=false",)),
    Change("exchange without stores of kernels to remote GPUs", fields={"rdma": False}),
    Change("the GPU on the link of the SmartNIC", fields={"link": SMARTNIC_LINK}, kind=UNFAIR),
    Change("a graph's launch at 1.1 us instead of the measured 4.6 us",
           scaled={"software.graph_us": 0.244}, kind=UNFAIR),
    Change("repeated bags sent each time", ("bags_once=false",)),
    Change("keys of 64 bits", ("key_bytes=8",)),
    Change("whole tables, the same number at each node", fields={"placement": "even"}),
    Change("16-bit values between nodes", fields={"wire": "float16"}),
    Change("a kernel for each whole MLP (level L3)", fields={"kernels": 3}),
    Change("slower kernels", kept=True, kind=UNMODELLED, missed=Kind(
        "GPU work of a mini-batch alone",
        ("gpu.kernel_us", "gpu.memory_bandwidth_gb_s", "gpu.float32_tflops"),
        (("H100 whole steps", "alone, *"),))),
    Change("slower host software", kind=UNMODELLED, missed=Kind(
        "launches and calls of host software",
        tuple(f"software.{name}_us" for name in (
            "operator", "fused_embedding", "launch_call", "doorbell", "copy", "synchronize",
            "graph")),
        (("H100 whole steps", "launch of a graph of 1, *"),
         ("H100 whole steps", "DLRM*operator by operator*")))),
    Change("slower network", kind=UNMODELLED, missed=Kind(
        "rate of the network", ("network.bandwidth_gbit_s",),
        (("100 Gb/s NIC", "drop of iterations*"),))),
    Change("other samples (the next seed)", seeds=1, kept=True, kind=SAMPLES),
)
"""Single changes of the fair setting."""
