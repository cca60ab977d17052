"""Timing model of the network between NICs: link rates, latency, and switch output queues."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from host.timing.clock import CYCLE_NS, cycles_of_us
from host.toml.provenance import check_source

__all__ = ["IP_BYTES", "MTUS", "Network", "NetworkProfile"]

_DIRECT_NODES = 3
"""Maximum nodes of a full mesh of cables: a U280 has two ports."""
_SWITCHED_NODES = 256
"""Maximum nodes with a switch: node numbers have eight bits."""
MTUS = (1500, 9000)
"""Bytes of an IP packet at most: Ethernet's, and that of jumbo frames. `IP_BYTES` of them are the
headers of IPv4 and UDP."""
IP_BYTES = 28
_LONGEST_FRAME = 1542
"""Bytes on the wire of a frame with 1,500 bytes of payload and a VLAN tag."""


@dataclass(frozen=True)
class NetworkProfile:
    """Constants of a network.

    Members
    -------
    name: name of the profile.
    one_way_us: latency from MAC to MAC in an idle network.
    bandwidth_gbit_s: rate of every link.
    overhead_bytes: bytes on the wire in addition to the frame.
    switched: True for a switch with output queues, False for a cable between each pair of nodes.
    queue_bytes: capacity of each output queue of a switch, in bytes on the wire; the switch drops a
        frame that does not fit. None is unlimited.
    source: source of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    one_way_us: float
    bandwidth_gbit_s: float
    overhead_bytes: int
    switched: bool
    queue_bytes: int | None = None
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("one_way_us", "bandwidth_gbit_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        if self.overhead_bytes < 0:
            raise ValueError(f"overhead_bytes must be at least 0, not {self.overhead_bytes!r}")
        if self.queue_bytes is not None:
            if not self.switched:
                raise ValueError(f"queue_bytes must go with switched, not {self.queue_bytes!r} "
                                 f"alone: cables have no queues")
            if self.queue_bytes < _LONGEST_FRAME:
                raise ValueError(f"queue_bytes must be at least {_LONGEST_FRAME}, the longest "
                                 f"frame, not {self.queue_bytes!r}")
        check_source(self)


class Network:
    """Delivers frames in order for each pair of nodes; only a full queue of a switch drops frames.

    A frame enters when its last byte has left the sender's MAC; the sender's NIC models its own
    link. The frame arrives ``lookahead`` cycles later at the earliest, and after the frames queued
    for the same receiver.

    Members
    -------
    lookahead: minimum latency in cycles.
    overhead_bytes, switched: from the profile.
    cycles_per_byte: cycles per byte of a link.
    overhead_cycles: cycles of a frame's overhead.
    free: cycle at which each queue can accept the next frame, float64 ``[sources, nodes]``; a
        switch has a single source.
    queue_cycles: cycles in which a full queue drains; infinite if unlimited.

    Raises ``ValueError`` for more nodes than direct cables can join.
    """

    def __init__(self, profile: NetworkProfile, nodes: int):
        most = _SWITCHED_NODES if profile.switched else _DIRECT_NODES
        if not 1 <= nodes <= most:
            raise ValueError(f"nodes must be between 1 and {most} of {profile.name}, "
                             f"not {nodes!r}")
        self.overhead_bytes = profile.overhead_bytes
        self.switched = profile.switched
        self.lookahead = int(cycles_of_us(profile.one_way_us))
        self.cycles_per_byte = 1.0 / (profile.bandwidth_gbit_s / 8 * CYCLE_NS)
        self.overhead_cycles = profile.overhead_bytes * self.cycles_per_byte
        self.queue_cycles = (inf if profile.queue_bytes is None
                             else profile.queue_bytes * self.cycles_per_byte)
        self.free = np.zeros((1 if profile.switched else nodes, nodes))

    def deliver(self, time: float, source: int, destination: int, size: int) -> float:
        """Return when the first byte of a frame of ``size`` bytes reaches ``destination``.

        Infinity means that the queue is full and the frame is dropped.

        time: cycle at which its last byte left ``source``; calls per destination must be in time
        order.
        """
        queue = 0 if self.switched else source, destination
        arrives = time + self.lookahead
        start = max(arrives, float(self.free[queue]))
        end = start + (size + self.overhead_bytes) * self.cycles_per_byte
        if end - arrives > self.queue_cycles:
            return inf
        self.free[queue] = end
        return start
