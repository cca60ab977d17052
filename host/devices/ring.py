"""Traffic of a ring all-reduce over the links of a topology."""

from host.devices.topology import Topology

__all__ = ["Ring"]


class Ring:
    """All-reduce of ``size`` bytes over all endpoints, in a ring in numerical order.

    In each of ``turns`` turns, ``part`` bytes go from each endpoint to the next (Patarasuk and Yuan
    2009, see :class:`host.timing.all_reduce.RingAllReduce`, which counts frames and cycles of a
    single network). If several links leave a host in parallel, rings share them.

    Members
    -------
    turns: 2 (endpoints - 1).
    outside: turns that wait for a link between hosts, 2 (hosts - 1).
    part: bytes per turn.
    part_us: microseconds that the slowest link needs for ``part``.
    moving_us: microseconds of all turns.

    Raises ``ValueError`` for less than one byte.
    """

    def __init__(self, topology: Topology, size: float):
        if not size >= 1:
            raise ValueError(f"size must be at least 1, not {size!r}")
        profile = topology.profile
        self.turns = 2 * (topology.endpoints - 1)
        self.outside = 2 * (profile.hosts - 1)
        self.part = size / topology.endpoints
        # Each group has a predecessor and a successor: a part up and a part down per turn.
        self.part_us = max((self.part / ((level.links or 1) * level.bandwidth_gb_s * 1e3)
                            for level in profile.levels if level.joins > 1), default=0.0)
        self.moving_us = self.turns * self.part_us
