"""Topology: a hierarchy of links that join endpoints to hosts, and hosts to switches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from host.bounds import check_least
from host.timing.network import IP_BYTES, MTUS, NetworkProfile
from host.toml.provenance import check_source

__all__ = ["Level", "Topology", "TopologyProfile", "of_traffic"]

_R = TypeVar("_R")

_MOST = 4096
"""Maximum endpoints; traffic is a square matrix of this size."""


@dataclass(frozen=True)
class Level:
    """A class of links that joins the groups of the level below.

    Members
    -------
    name: name of the class, such as ``nvlink`` or ``spine``.
    joins: groups of the level below (endpoints, for the first level) that a switch joins.
    bandwidth_gb_s: payload rate of each link from a group to the switch, per direction.
    one_way_us: latency between endpoints if this is the highest level between them.
    local: whether it is inside a host.
    links: links of each group, such as a NIC per GPU of a host; None: a single link. Each link
        carries the bytes of an equal part of the group's endpoints.
    source: source of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    joins: int
    bandwidth_gb_s: float
    one_way_us: float
    local: bool = False
    links: int | None = None
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_least(self, joins=1, links=1)
        for name in ("bandwidth_gb_s", "one_way_us"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        check_source(self)


@dataclass(frozen=True)
class TopologyProfile:
    """Levels from the inside out: ``levels[0]`` joins endpoints, the next level joins their groups.

    An endpoint sends and receives: a GPU, a NIC, or a host with a single GPU or NIC.
    """

    name: str
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("levels must contain at least 1 level, not 0")
        for index, level in enumerate(self.levels[1:], 1):
            if level.local and not self.levels[index - 1].local:
                raise ValueError(f"levels[{index}].local must be false: the level below is not "
                                 f"inside a host")
        below = 1
        for index, level in enumerate(self.levels):
            if below % (level.links or 1):
                raise ValueError(f"levels[{index}].links must divide the {below} endpoints of a "
                                 f"group, not {level.links!r}")
            below *= level.joins
        if self.endpoints > _MOST:
            raise ValueError(f"levels must join at most {_MOST} endpoints, not {self.endpoints}")

    @property
    def endpoints(self) -> int:
        """Number of endpoints."""
        return int(np.prod([level.joins for level in self.levels], dtype=object))

    @property
    def hosts(self) -> int:
        """Number of groups of endpoints that are joined only by levels outside a host."""
        return int(np.prod([level.joins for level in self.levels if not level.local],
                           dtype=object))

    @classmethod
    def of(cls, network: NetworkProfile, nodes: int, payload: int = MTUS[0] - IP_BYTES,
           header: int = 42, inside: Sequence[Level] = (), nics: int = 1) -> "TopologyProfile":
        """Return the levels ``inside`` each of ``nodes`` nodes, and the network that joins nodes.

        payload, header: bytes of a full frame; the default is UDP with an MTU of 1,500.
        nics: links of each node to the network; they divide its endpoints evenly.
        """
        share = payload / (payload + header + network.overhead_bytes)
        return cls(network.name, (*inside, Level(
            network.name, nodes, network.bandwidth_gbit_s / 8 * share, network.one_way_us,
            links=nics if nics > 1 else None)))


def of_traffic(method: Callable[[Any, np.ndarray], _R]) -> Callable[[Any, np.ndarray], _R]:
    """Let a method of a device and of traffic compute each result once, in ``found`` of the device.
    """
    @wraps(method)
    def kept(device: Any, traffic: np.ndarray) -> _R:
        traffic = np.asarray(traffic)
        key = (method, traffic.dtype.char, traffic.shape, traffic.tobytes())
        if key not in device.found:
            device.found[key] = method(device, traffic)
        return device.found[key]

    return kept


class Topology:
    """Timing model of messages over a `TopologyProfile`.

    Every group of each level has links up and down. A link moves its bytes in sequence at
    its level's rate. Bytes between two endpoints pass the links of all levels up to the lowest
    common level, and wait in each queue.

    Members
    -------
    profile: the profile.
    endpoints: their number.
    link: int ``[levels, endpoints]``, the link of each endpoint's group that carries its bytes to
        that level; the endpoint itself at the first level.
    """

    def __init__(self, profile: TopologyProfile):
        self.profile = profile
        self.endpoints = profile.endpoints
        sizes = np.cumprod([1, *(level.joins for level in profile.levels)])
        links = np.array([level.links or 1 for level in profile.levels])
        self.link = np.arange(self.endpoints) // (sizes[:-1] // links)[:, None]
        self._switch = np.arange(self.endpoints) // sizes[1:, None]
        self._free: dict[tuple[int, int, int], float] = {}

    def level(self, source: int, destination: int) -> int:
        """Return the lowest level that joins two distinct endpoints."""
        return int(np.argmax(self._switch[:, source] == self._switch[:, destination]))

    def one_way_us(self, source: int, destination: int) -> float:
        """Return the latency between two endpoints, 0 from an endpoint to itself."""
        if source == destination:
            return 0.0
        return self.profile.levels[self.level(source, destination)].one_way_us

    def furthest_us(self, traffic: np.ndarray) -> float:
        """Return the longest latency between endpoints that exchange bytes, see `link_us`."""
        return max((self.profile.levels[k].one_way_us for k in range(len(self._switch))
                    if (traffic * self._highest(k)).any()), default=0.0)

    def link_us(self, traffic: np.ndarray) -> np.ndarray:
        """Return the microseconds that the busiest link of each level needs for ``traffic``.

        The maximum is a lower bound of the duration of an exchange.

        traffic: bytes ``[endpoints, endpoints]`` from each to each; bytes of an endpoint to itself
        use no link.
        """
        traffic = self.checked(traffic)
        result = np.zeros(len(self.profile.levels))
        outside = ~np.eye(self.endpoints, dtype=bool)
        for k, level in enumerate(self.profile.levels):
            # Traffic within a switch of the level below does not reach this level.
            if k:
                outside &= self._switch[k - 1][:, None] != self._switch[k - 1]
            crossing = np.where(outside, traffic, 0.0)
            up, down = (np.bincount(self.link[k], crossing.sum(axis=axis)) for axis in (1, 0))
            result[k] = max(up.max(), down.max()) / (level.bandwidth_gb_s * 1e3)
        return result

    def send(self, time_us: float, source: int, destination: int, size: float) -> float:
        """Send a message at ``time_us``; return when its last byte has arrived.

        Switching is cut-through: the head continues before the tail has arrived, and each link of
        the path is occupied for the message's bytes. Calls must be in time order; :meth:`clear`
        empties the queues.
        """
        if source == destination:
            return time_us
        top = self.level(source, destination)
        way = [(k, int(self.link[k][source]), 0) for k in range(top + 1)]
        way += [(k, int(self.link[k][destination]), 1) for k in reversed(range(top + 1))]
        head = tail = time_us
        for link in way:
            head = max(head, self._free.get(link, 0.0))
            self._free[link] = head + size / (self.profile.levels[link[0]].bandwidth_gb_s * 1e3)
            tail = max(tail, self._free[link])
        return tail + self.profile.levels[top].one_way_us

    def clear(self) -> None:
        """Clear the queues of all links."""
        self._free.clear()

    def uniform(self, size: float) -> np.ndarray:
        """Return traffic of ``size`` bytes from each endpoint to each other endpoint."""
        return np.where(np.eye(self.endpoints, dtype=bool), 0.0, float(size))

    def checked(self, traffic: np.ndarray) -> np.ndarray:
        """Return ``traffic`` as float64. Raises ``ValueError`` if it is invalid."""
        traffic = np.asarray(traffic, np.float64)
        if traffic.shape != (self.endpoints, self.endpoints) or not (traffic >= 0).all():
            raise ValueError(f"traffic must be non-negative bytes of {self.endpoints} by "
                             f"{self.endpoints} endpoints, not of shape {traffic.shape}")
        return traffic

    def _highest(self, level: int) -> np.ndarray:
        """Return the pairs of distinct endpoints whose lowest common level is ``level``."""
        joined = self._switch[level][:, None] == self._switch[level]
        below = (self._switch[level - 1][:, None] == self._switch[level - 1] if level
                 else np.eye(self.endpoints, dtype=bool))
        return joined & ~below
