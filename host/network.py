"""The network between NICs: links of limited rate, latency, and queues at the switch's outputs."""

from dataclasses import dataclass

from .timing import CYCLE_NS, Link, cycles_of_us

__all__ = ["Network", "NetworkProfile"]


@dataclass(frozen=True)
class NetworkProfile:
    """Constants of a network.

    Members
    -------
    name: of the profile.
    one_way_us: from MAC to MAC, of an empty network.
    bandwidth_gbit_s: of every link.
    overhead_bytes: on the wire besides the frame.
    switched: one switch whose outputs queue; otherwise a cable between each pair of nodes.
    """

    name: str
    one_way_us: float
    bandwidth_gbit_s: float
    overhead_bytes: int
    switched: bool

    def __post_init__(self) -> None:
        for field in ("one_way_us", "bandwidth_gbit_s"):
            if not getattr(self, field) > 0:
                raise ValueError(f"{field} must be above 0, not {getattr(self, field)!r}")
        if self.overhead_bytes < 0:
            raise ValueError(f"overhead_bytes must be at least 0, not {self.overhead_bytes!r}")


class Network:
    """Delivers frames in order for each pair of nodes, and loses nothing.

    A frame is handed on when its last byte has left the sender's MAC (the sender's link is part of
    its NIC: whoever runs the NIC takes beats at the link's rate). It arrives ``lookahead`` cycles
    later at the earliest, and behind what is queued for the same receiver.
    """

    def __init__(self, profile: NetworkProfile, nodes: int):
        self._overhead = profile.overhead_bytes
        self._switched = profile.switched
        self._nodes = nodes
        self._gb_s = profile.bandwidth_gbit_s / 8
        self.lookahead = int(cycles_of_us(profile.one_way_us))
        self.cycles_per_byte = 1.0 / (self._gb_s * CYCLE_NS)
        self.overhead_cycles = profile.overhead_bytes * self.cycles_per_byte
        self._outputs: dict[tuple[int, int], Link] = {}

    def deliver(self, time: float, source: int, destination: int, size: int) -> float:
        """Return when the first byte of a frame of ``size`` bytes reaches ``destination``.

        ``time`` is when its last byte left ``source``; calls come in the order of time for each
        destination.
        """
        key = (-1 if self._switched else source, destination)
        if key not in self._outputs:
            self._outputs[key] = Link(self._gb_s)
        return self._outputs[key].send(time + self.lookahead, size + self._overhead)[0]
