"""Timing model of NCCL's collectives between GPUs."""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

import numpy as np

from host.bounds import check_least
from host.devices.cost import Cost
from host.devices.ring import Ring
from host.devices.topology import Topology, of_traffic
from host.toml.provenance import check_source

__all__ = ["NcclCollectives", "NcclProfile"]

_PROTOCOLS = ("ll", "ll128", "simple")


@dataclass(frozen=True)
class NcclProfile:
    """Constants of NCCL's protocols LL, LL128 and Simple, as in its own tuning model.

    Members
    -------
    name: name of the profile.
    base_..._us: fixed time of an operation, independent of size and peers.
    hop_..._us: time from a GPU to the next over the network, including its latency.
    local_hop_..._us: the same inside a host.
    ll_fraction, ll128_fraction: fraction of a link's bytes that is data; the rest is flags.
    ll_most_bytes: largest send of a group that uses LL; larger sends use Simple.
    parallel_peers: concurrent sends and receives of a group.
    channels: GPU multiprocessors that a collective occupies.
    put_us: time from a kernel's store to the NIC until a kernel of a remote GPU sees the data.
    source: source of each number, see :mod:`host.toml.provenance`.

    Raises ``ValueError`` for a constant out of range.
    """

    name: str
    base_ll_us: float
    base_ll128_us: float
    base_simple_us: float
    hop_ll_us: float
    hop_ll128_us: float
    hop_simple_us: float
    local_hop_ll_us: float
    local_hop_ll128_us: float
    local_hop_simple_us: float
    ll_fraction: float
    ll128_fraction: float
    ll_most_bytes: int
    parallel_peers: int
    channels: int
    put_us: float
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_least(self, **{f"{kind}_{protocol}_us": 0 for kind in ("base", "hop", "local_hop")
                             for protocol in _PROTOCOLS})
        for name in ("ll_fraction", "ll128_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, "
                                 f"not {getattr(self, name)!r}")
        check_least(self, ll_most_bytes=0, parallel_peers=1, channels=1, put_us=0)
        check_source(self)

    def fraction(self, protocol: str) -> float:
        """Return the share of a protocol's bytes that is data."""
        return 1.0 if protocol == "simple" else getattr(self, f"{protocol}_fraction")


class NcclCollectives:
    """Grouped sends and receives, and ring all-reduce, over a topology of GPUs.

    Data are in GPU memory before and after. A collective is a kernel; its cost excludes call and
    launch.

    Parameters: ``nccl``; ``topology``; ``by_rail``, whether an exchange may first move bytes inside
    each host to the endpoint that has the number of their destination in its host. An endpoint then
    exchanges with one endpoint of each other host, in larger messages (NVIDIA, "Doubling all2all
    performance with NVIDIA Collective Communication Library 2.12"). Member: ``by_rail``, False if
    there is one host, or one endpoint in each host.
    """

    def __init__(self, nccl: NcclProfile, topology: Topology, by_rail: bool = False):
        self.nccl = nccl
        self.topology = topology
        self.by_rail = by_rail and 1 < topology.profile.hosts < topology.endpoints
        self.found: dict = {}

    @cached_property
    def all_direct(self) -> "NcclCollectives":
        """The same collectives with all bytes sent from endpoint to endpoint."""
        return NcclCollectives(self.nccl, self.topology)

    @of_traffic
    def all_to_all(self, traffic: np.ndarray) -> Cost:
        """Return the cost of exchanging ``traffic``, bytes ``[endpoints, endpoints]``.

        The cost is the base, a hop per ``parallel_peers`` peers of the busiest endpoint, over the
        network and inside the host, and the bytes of the busiest link. The largest message decides
        the protocol of all. An empty exchange costs nothing.
        """
        return sum(map(self._exchange, self._turns(traffic)), Cost())

    def _exchange(self, traffic: np.ndarray) -> Cost:
        if not traffic.any():
            return Cost()
        nccl, protocol = self.nccl, self._protocol(traffic)
        moving = float(self.topology.link_us(traffic).max()) / nccl.fraction(protocol)
        overhead = getattr(nccl, f"base_{protocol}_us") + sum(
            ceil(rounds) * us for rounds, us in self._hops(traffic, protocol))
        return Cost(overhead + moving, overhead, {"link": moving})

    @of_traffic
    def puts(self, traffic: np.ndarray) -> Cost:
        """Return the cost of exchanging ``traffic`` by stores of kernels, without a collective.

        It takes ``put_us`` per ``parallel_peers`` peers of the busiest endpoint over the network,
        a hop of protocol LL per ``parallel_peers`` peers inside the host, and the bytes of the
        busiest link.
        """
        traffic = self._between(traffic)
        if not traffic.any():
            return Cost()
        (remote, _), (local, local_us) = self._hops(traffic, "ll")
        overhead = ceil(remote) * self.nccl.put_us + ceil(local) * local_us
        moving = float(self.topology.link_us(traffic).max())
        return Cost(overhead + moving, overhead, {"link": moving})

    @of_traffic
    def further_us(self, traffic: np.ndarray) -> float:
        """Return the microseconds that an exchange of ``traffic`` adds to a group, without its
        bytes.

        The time is proportional to the rounds of its sends and receives, which may be fractional.
        """
        return sum(rounds * us for turn in self._turns(traffic)
                   for rounds, us in self._hops(turn, self._protocol(turn)))

    def all_reduce(self, size: float) -> Cost:
        """Return the cost of an all-reduce of ``size`` bytes over all endpoints.

        A ring (:class:`host.devices.ring.Ring`) with the fastest protocol, as NCCL selects it. With
        one endpoint it costs nothing.
        """
        if self.topology.endpoints == 1:
            return Cost()
        ring, nccl = Ring(self.topology, size), self.nccl
        found = []
        for protocol in _PROTOCOLS:
            overhead = (getattr(nccl, f"base_{protocol}_us")
                        + ring.outside * getattr(nccl, f"hop_{protocol}_us")
                        + (ring.turns - ring.outside) * getattr(nccl, f"local_hop_{protocol}_us"))
            moving = ring.moving_us / nccl.fraction(protocol)
            found.append(Cost(overhead + moving, overhead, {"link": moving}))
        return min(found, key=lambda cost: cost.us)

    def _between(self, traffic: np.ndarray) -> np.ndarray:
        """Return the bytes between distinct endpoints."""
        return self.topology.checked(traffic) * (1 - np.eye(self.topology.endpoints))

    def _turns(self, traffic: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the fastest of the direct exchange, and the two exchanges by rail."""
        direct = self._between(traffic)
        if not self.by_rail:
            return (direct,)
        hosts, size = self.topology.profile.hosts, self.topology.endpoints
        each = size // hosts
        # [host, endpoint in the host, other host, endpoint there]
        parts = direct.reshape(hosts, each, hosts, each)
        inside, across = (np.zeros_like(parts) for _ in range(2))
        number, host = np.arange(each), np.arange(hosts)
        inside[host, :, host] = parts.sum(axis=2)
        across[:, number, :, number] = parts.sum(axis=1).transpose(2, 0, 1)
        two = tuple(self._between(way.reshape(size, size)) for way in (inside, across))
        return min(((direct,), two), key=lambda turns: sum(self._exchange(t).us for t in turns))

    def _protocol(self, traffic: np.ndarray) -> str:
        return "ll" if traffic.max() <= self.nccl.ll_most_bytes else "simple"

    def _hops(self, traffic: np.ndarray, protocol: str) -> list[tuple[float, float]]:
        """Return the maximum rounds of peers over all endpoints and the time per round, for network
        and host.
        """
        nccl, topology = self.nccl, self.topology
        host = np.arange(topology.endpoints) // (topology.endpoints // topology.profile.hosts)
        same = host[:, None] == host
        found = []
        for pairs, kind in ((~same, "hop"), (same, "local_hop")):
            pairs = (traffic > 0) & pairs
            peers = int(np.maximum(pairs.sum(axis=0), pairs.sum(axis=1)).max())
            found.append((peers / nccl.parallel_peers, getattr(nccl, f"{kind}_{protocol}_us")))
        return found
