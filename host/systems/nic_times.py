"""Times of a cluster of SmartNICs for one mini-batch, simulated or modelled."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["NicTimes"]


@dataclass(frozen=True)
class NicTimes:
    """Times of one mini-batch on the NICs, with GPUs that answer their lookups, in microseconds.

    Members
    -------
    phases: from the first query leaving a host to the last answer in its memory, for a single
        mini-batch, by phase in chronological order.
    interval_us: from one mini-batch to the next with several in flight.
    launches: gathers on the busiest node's GPU that the driver of the NIC launches.
    gathers: gathers on that GPU, whoever launches them. gathered: rows that they read.
    sent_bytes: what a NIC sends to others, the mean of all.
    delivered_bytes: what the NIC that writes most of all writes to its host and GPU: request lists,
        results and what tells of them, headers of packets included.
    interaction_us: with the interaction on the NIC, from dense vectors in GPU memory to the last
        answer, where lookups have done meanwhile what they can.
    update_us: in training, from the last node's gradients to the last row written.
    """

    phases: Mapping[str, float] = field(default_factory=dict)
    interval_us: float = 0.0
    launches: float = 0.0
    gathers: float = 0.0
    gathered: float = 0.0
    sent_bytes: float = 0.0
    delivered_bytes: float = 0.0
    update_us: float = 0.0
    interaction_us: float = 0.0

    @property
    def service_us(self) -> float:
        """Microseconds of all phases."""
        return sum(self.phases.values())
