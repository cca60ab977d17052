"""A hierarchy of links: endpoints in hosts, hosts behind switches, switches behind switches."""

from dataclasses import dataclass, field

import numpy as np

from host.timing.network import NetworkProfile
from host.toml.provenance import check_source

__all__ = ["Level", "Topology", "TopologyProfile"]

_MOST = 4096
"""Endpoints of a topology; a matrix of bytes between all of them is square."""


@dataclass(frozen=True)
class Level:
    """One class of links: what joins the groups of the level below.

    Members
    -------
    name: of the class, such as ``nvlink`` or ``spine``.
    joins: groups of the level below (endpoints, for the first level) that one switch joins.
    bandwidth_gb_s: of the link of each such group to the switch, in each direction, of payload.
    one_way_us: from endpoint to endpoint where this is the highest level between them.
    local: whether it is inside a host.
    source: of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    joins: int
    bandwidth_gb_s: float
    one_way_us: float
    local: bool = False
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.joins < 1:
            raise ValueError(f"joins must be at least 1, not {self.joins!r}")
        for name in ("bandwidth_gb_s", "one_way_us"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        check_source(self)


@dataclass(frozen=True)
class TopologyProfile:
    """Levels from the inside out: ``levels[0]`` joins endpoints, the next one their groups.

    An endpoint is what sends and receives: a GPU, a NIC, or a host where it has only one of them.
    """

    name: str
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("levels must be at least one, not none")
        for index, level in enumerate(self.levels[1:], 1):
            if level.local and not self.levels[index - 1].local:
                raise ValueError(f"levels[{index}].local must be false: the level below is outside "
                                 f"the host")
        if self.endpoints > _MOST:
            raise ValueError(f"levels must join at most {_MOST} endpoints, not {self.endpoints}")

    @property
    def endpoints(self) -> int:
        """Number of endpoints."""
        return int(np.prod([level.joins for level in self.levels], dtype=object))

    @property
    def hosts(self) -> int:
        """Number of groups of endpoints that only levels outside a host join."""
        return int(np.prod([level.joins for level in self.levels if not level.local],
                           dtype=object))

    @classmethod
    def of(cls, network: NetworkProfile, nodes: int, payload: int = 1472,
           header: int = 42) -> "TopologyProfile":
        """Return the one level of a network's links between ``nodes`` nodes.

        ``payload`` and ``header`` are bytes of a full frame: by default UDP in an MTU of 1,500.
        """
        share = payload / (payload + header + network.overhead_bytes)
        return cls(network.name, (Level(network.name, nodes, network.bandwidth_gbit_s / 8 * share,
                                        network.one_way_us),))


class Topology:
    """What a `TopologyProfile` does with messages.

    Every group of each level has one link up and one down, each of which moves what passes it one
    byte after the other at its level's rate. Bytes between two endpoints pass the links of every
    level up to the lowest that joins them, and wait in the queue of each.

    Members: ``profile``; ``endpoints``, their number; ``group``, int ``[levels, endpoints]``, the
    group of each endpoint whose link goes to that level (the endpoint itself at the first).
    """

    def __init__(self, profile: TopologyProfile):
        self.profile = profile
        self.endpoints = profile.endpoints
        sizes = np.cumprod([1, *(level.joins for level in profile.levels)])
        self.group = np.arange(self.endpoints) // sizes[:-1, None]
        self._switch = np.arange(self.endpoints) // sizes[1:, None]
        self._free: dict[tuple[int, int, int], float] = {}

    def level(self, source: int, destination: int) -> int:
        """Return the lowest level that joins two different endpoints."""
        return int(np.argmax(self._switch[:, source] == self._switch[:, destination]))

    def one_way_us(self, source: int, destination: int) -> float:
        """Return the latency between two endpoints, 0 from one to itself."""
        if source == destination:
            return 0.0
        return self.profile.levels[self.level(source, destination)].one_way_us

    def furthest_us(self, traffic: np.ndarray) -> float:
        """Return the longest latency between endpoints that exchange bytes, see `link_us`."""
        return max((self.profile.levels[k].one_way_us for k in range(len(self._switch))
                    if (traffic * self._highest(k)).any()), default=0.0)

    def link_us(self, traffic: np.ndarray) -> np.ndarray:
        """Return the microseconds that the busiest link of each level needs for ``traffic``.

        ``traffic``: bytes ``[endpoints, endpoints]`` from each to each; what an endpoint has for
        itself passes no link. No exchange of these bytes ends earlier than the largest of them.
        """
        traffic = self.checked(traffic)
        result = np.zeros(len(self.profile.levels))
        outside = ~np.eye(self.endpoints, dtype=bool)
        for k, level in enumerate(self.profile.levels):
            # What stays under one switch of the level below does not come up here.
            if k:
                outside &= self._switch[k - 1][:, None] != self._switch[k - 1]
            crossing = np.where(outside, traffic, 0.0)
            groups = int(self.group[k][-1]) + 1
            up = np.bincount(self.group[k], crossing.sum(axis=1), groups)
            down = np.bincount(self.group[k], crossing.sum(axis=0), groups)
            result[k] = max(up.max(), down.max()) / (level.bandwidth_gb_s * 1e3)
        return result

    def send(self, time_us: float, source: int, destination: int, size: float) -> float:
        """Send a message at ``time_us``; return when its last byte has arrived.

        It cuts through: its head goes on while its tail is behind, and each link on its way is then
        taken for its bytes. Calls come in the order of time; :meth:`clear` empties the queues.
        """
        if source == destination:
            return time_us
        top = self.level(source, destination)
        way = [(k, int(self.group[k][source]), 0) for k in range(top + 1)]
        way += [(k, int(self.group[k][destination]), 1) for k in reversed(range(top + 1))]
        head = tail = time_us
        for link in way:
            head = max(head, self._free.get(link, 0.0))
            self._free[link] = head + size / (self.profile.levels[link[0]].bandwidth_gb_s * 1e3)
            tail = max(tail, self._free[link])
        return tail + self.profile.levels[top].one_way_us

    def clear(self) -> None:
        """Forget the messages that links are taken by."""
        self._free.clear()

    def uniform(self, size: float) -> np.ndarray:
        """Return the traffic in which each endpoint has ``size`` bytes for each other one."""
        return np.where(np.eye(self.endpoints, dtype=bool), 0.0, float(size))

    def checked(self, traffic: np.ndarray) -> np.ndarray:
        """Return ``traffic`` as float64, or raise ``ValueError`` for what is none."""
        traffic = np.asarray(traffic, np.float64)
        if traffic.shape != (self.endpoints, self.endpoints) or not (traffic >= 0).all():
            raise ValueError(f"traffic must be bytes of {self.endpoints} by {self.endpoints} "
                             f"endpoints, none below 0, not of shape {traffic.shape}")
        return traffic

    def _highest(self, level: int) -> np.ndarray:
        """Return which pairs of different endpoints ``level`` is the lowest to join."""
        joined = self._switch[level][:, None] == self._switch[level]
        below = (self._switch[level - 1][:, None] == self._switch[level - 1] if level
                 else np.eye(self.endpoints, dtype=bool))
        return joined & ~below
