"""Changes that apply to both sides of a row. To add a change, add a line to `CHANGES`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.evaluation.point import Point
from sim.evaluation.systems import fixed_for

__all__ = ["CHANGES", "REPEATS", "Change"]


@dataclass(frozen=True)
class Change:
    """A change that every system gets. Without it, each system searches all of its options.

    Members
    -------
    name: text of the tables.
    fixed: ``name=value`` of searched options; a system without the option ignores it.
    fields: fields of the cluster that change, such as ``wire``.
    fair: whether a cluster may be like that. A change that contradicts a measurement, or charges a
        GPU for the SmartNIC, only shows what an unfair setting does.
    """

    name: str
    fixed: Sequence[str] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    fair: bool = True

    def of(self, point: Point) -> Point:
        """Return a point with the change; the point itself if its system ignores the change."""
        fixed = fixed_for(point.kind.name, self.fixed)
        return point.changed(fixed=(*point.system.fixed, *fixed), **self.fields)


REPEATS = "repeated bags sent each time"

CHANGES = (
    Change("one host thread", ("threads=1",)),
    Change("one NCCL communicator", ("communicators=1",)),
    Change("a collective for each mini-batch", ("one_collective=false",)),
    Change("exchange without stores of kernels to remote GPUs", fields={"rdma": False}),
    Change("the GPU on the link of the SmartNIC", fields={"link": None}, fair=False),
    Change("a graph's launch at 1.1 us instead of the measured 4.6 us",
           fields={"scaled": (("software_tuned_h100.graph_us", 0.244),)}, fair=False),
    Change(REPEATS, ("bags_once=false",)),
    Change("keys of 64 bits", ("key_bytes=8",)),
    Change("rows of every table hashed over the nodes", fields={"placement": "row"}),
    Change("16-bit values between nodes", fields={"wire": "float16"}),
)
"""Single changes of the fair setting, in which every system searches all options."""
