"""Collectives of MPI between the hosts of GPUs, or between CPUs."""

from dataclasses import dataclass, field

import numpy as np

from host.devices.cost import Cost
from host.devices.ring import Ring
from host.devices.topology import Topology, of_traffic
from host.toml.provenance import check_source

__all__ = ["MpiCollectives", "MpiProfile"]


@dataclass(frozen=True)
class MpiProfile:
    """Constants of an MPI library.

    message_us: host time per message, for both ends.
    source: source of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    message_us: float
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not self.message_us >= 0:
            raise ValueError(f"message_us must be at least 0, not {self.message_us!r}")
        check_source(self)


class MpiCollectives:
    """MPI_Alltoallv and MPI_Allreduce over a topology, from host memory to host memory.

    Parameters
    ----------
    mpi, topology: the library and the links.
    call_us: host time of the framework's call of a collective, such as ``operator_us`` of its
        software or of a CPU; 0 if a program calls MPI directly.
    """

    def __init__(self, mpi: MpiProfile, topology: Topology, call_us: float = 0.0):
        if not call_us >= 0:
            raise ValueError(f"call_us must be at least 0, not {call_us!r}")
        self.mpi = mpi
        self.topology = topology
        self.call_us = call_us
        self.found: dict = {}

    @of_traffic
    def all_to_all(self, traffic: np.ndarray) -> Cost:
        """Return the cost of exchanging ``traffic``, bytes ``[endpoints, endpoints]``.

        Every endpoint posts its messages in sequence, and all are in flight at once. The cost is
        the calls, a latency, and the bytes of the busiest link. An empty exchange costs nothing.
        """
        traffic = self.topology.checked(traffic) * (1 - np.eye(self.topology.endpoints))
        if not traffic.any():
            return Cost()
        counts = np.maximum((traffic > 0).sum(axis=1), (traffic > 0).sum(axis=0))
        calls = self.call_us + float(counts.max()) * self.mpi.message_us
        moving = float(self.topology.link_us(traffic).max())
        latency = self.topology.furthest_us(traffic)
        return Cost(calls + latency + moving, calls + latency, {"link": moving, "cpu": calls})

    def all_reduce(self, size: float) -> Cost:
        """Return the cost of an all-reduce of ``size`` bytes over all endpoints.

        A ring (:class:`host.devices.ring.Ring`); each turn takes a message and the longest latency.
        With one endpoint it costs nothing.
        """
        if self.topology.endpoints == 1:
            return Cost()
        ring = Ring(self.topology, size)
        latency = max(level.one_way_us for level in self.topology.profile.levels if level.joins > 1)
        calls = self.call_us + ring.turns * self.mpi.message_us
        overhead = calls + ring.turns * latency
        return Cost(overhead + ring.moving_us, overhead, {"link": ring.moving_us, "cpu": calls})
