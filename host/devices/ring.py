"""What a ring all-reduce moves over the links of a topology."""

from host.devices.topology import Topology

__all__ = ["Ring"]


class Ring:
    """Sum ``size`` bytes of every endpoint in a ring, in the order of their numbers.

    ``turns`` times, ``part`` bytes go from each endpoint to the next (Patarasuk and Yuan 2009, see
    :class:`host.timing.all_reduce.RingAllReduce`, which counts frames and cycles of one network).
    Where
    several links leave a host side by side, their level's rate is that of all: rings share them.

    Members: ``turns``, 2 (endpoints - 1); ``outside``, those of them that wait for a link between
    hosts, 2 (hosts - 1); ``part``, bytes; ``part_us``, the microseconds that the slowest link needs
    for one part; ``moving_us``, those of all turns.

    ``ValueError`` for less than one byte.
    """

    def __init__(self, topology: Topology, size: float):
        if not size >= 1:
            raise ValueError(f"size must be at least 1, not {size!r}")
        profile = topology.profile
        self.turns = 2 * (topology.endpoints - 1)
        self.outside = 2 * (profile.hosts - 1)
        self.part = size / topology.endpoints
        # Each group has one neighbour behind it and one before: one part up and one down a turn.
        self.part_us = max((self.part / (level.bandwidth_gb_s * 1e3) for level in profile.levels
                            if level.joins > 1), default=0.0)
        self.moving_us = self.turns * self.part_us
