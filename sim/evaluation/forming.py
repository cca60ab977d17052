"""Charge for the CPU threads that form mini-batches of similar samples ahead of the steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from host.devices.cpu import CpuProfile
from host.systems import THREADS

__all__ = ["ALGORITHM_COST", "FILE_ORDER", "Forming", "forming_of"]

ALGORITHM_COST = {"file": 0.0, "sort": 0.4, "graph-printed": 0.75, "graph": 1.0, "greedy": 2.5}
"""Time of each algorithm of :data:`host.batching.ALGORITHMS`, relative to the graph algorithm.
Source: ``sim batching`` on Kaggle's shape, 128 samples from windows of 2,048."""


@dataclass(frozen=True)
class Forming:
    """Threads that form mini-batches. A thread forms one window at a time; windows are independent.

    Members: ``us``, time of a thread for a mini-batch, 0 in file order; ``threads``, of all nodes.
    """

    us: float = 0.0
    threads: int = 1

    @property
    def interval_us(self) -> float:
        """Lower bound of the time from one mini-batch to the next."""
        return self.us / self.threads

    def formed(self, ready: Sequence[float], first: Sequence[bool]) -> list[float]:
        """Return when mini-batches are formed, ascending.

        ready: arrival of the last sample of the window of each mini-batch, ascending.
        first: whether a mini-batch is the first of its window.
        """
        free, found, at, latest = [0.0] * self.threads, [], None, 0.0
        heapify(free)
        for arrived, fresh in zip(ready, first):
            if fresh or at is None:
                if at is not None:
                    heappush(free, at)
                at = max(arrived, heappop(free))
            at += self.us
            latest = max(latest, at)
            found.append(latest)
        return found


FILE_ORDER = Forming()
"""No thread forms mini-batches."""


def forming_of(batching: str, keys: float, cpu: CpuProfile, endpoints: int) -> Forming:
    """Return the charge for a mini-batch of ``keys`` lookups.

    Each of ``endpoints`` has a CPU whose cores form mini-batches, without the cores of the threads
    that call operators and drive the NIC.
    """
    return Forming(keys * cpu.graph_key_ns * ALGORITHM_COST[batching] / 1e3,
                   endpoints * max(1, cpu.cores - THREADS))
