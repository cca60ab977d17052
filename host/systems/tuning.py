"""Options of ``bl-tuned``, and the search for the best combination."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import product
from typing import TypeVar

from host.systems.devices import Devices
from host.systems.options import (
    COPIED_ROWS,
    KEY_BYTES,
    THREADS,
    WIRES,
    HostTuning,
    Variants,
    host_variants,
    wire_in_words,
    wires_to,
)

__all__ = ["EXCHANGES", "Tuning", "best", "tuning_variants"]

_T = TypeVar("_T")

EXCHANGES = ("gpu", "nccl", "mpi")
"""Ways in which GPUs exchange data: stores of their kernels to the NIC and to other GPUs without a
call (RDMA), NCCL, or MPI between host memories."""


@dataclass(frozen=True)
class Tuning(HostTuning):
    """Optional optimisations of a baseline.

    Members
    -------
    fused: a batched operator looks up all tables of a node; another updates them.
    exchange: one of `EXCHANGES`. NCCL sums the gradients of the MLPs, except with ``mpi``, where
        the software profile selects the all-reduce.
    dedupe: a requester sends each key once, and a gradient per key. Except with the exchange
        ``gpu``, the host must wait for the number of keys, which ends a graph.
    overlap: the bottom MLP and the all-reduce of the MLPs overlap the exchange of vectors.
    buckets: the all-reduce of the top MLP overlaps the backward pass of the bottom MLP.
    copied_rows: every node copies each table of at most this many rows; training all-reduces their
        gradients.
    joined: the tables of a node form one table; excludes ``fused``.
    host_indices: MPI exchanges indices between hosts before they are copied to the GPU; excludes
        ``dedupe``.
    grouped: an NCCL call exchanges the indices of a mini-batch and the vectors of an earlier one;
        inference only, with several mini-batches in flight.
    one_collective: an NCCL call exchanges the data of all mini-batches of a graph, for one fixed
        cost and all bytes; inference only.
    direct: an NCCL exchange sends all bytes from GPU to GPU. Otherwise it first moves bytes inside
        each node where this makes the exchange faster; links then carry more bytes
        (:class:`host.devices.nccl.NcclCollectives`).
    bags_once: equal bags of a table in consecutive samples of a share are sent, pooled and returned
        once. The requester copies the vector to each of the bags, by an index per bag (TorchRec:
        variable batch per feature, ``inverse_indices``).
    wire: format of vectors and gradients between nodes, one of `WIRES`.
    """

    fused: bool = True
    exchange: str = "nccl"
    dedupe: bool = True
    overlap: bool = True
    buckets: bool = False
    copied_rows: int = 10_000
    joined: bool = False
    host_indices: bool = False
    grouped: bool = False
    one_collective: bool = False
    direct: bool = False
    bags_once: bool = False
    wire: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("exchange", EXCHANGES), ("wire", tuple(WIRES))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, "
                                 f"not {getattr(self, name)!r}")
        if self.copied_rows < 0:
            raise ValueError(f"copied_rows must be at least 0, not {self.copied_rows!r}")

    def possible(self, training: bool = False) -> bool:
        """Return whether the options are consistent and not equivalent to another tuning."""
        nccl = self.exchange == "nccl"
        return not ((self.fused and self.joined) or (self.host_indices and self.dedupe)
                    or (self.grouped and (training or self.host_indices or not nccl))
                    or (self.one_collective and (training or not nccl))
                    or (self.direct and not nccl)
                    or (self.buckets and not training)
                    or (self.communicators > 1 and not (training or nccl))
                    or (self.exchange == "mpi" and not (self.dedupe or self.host_indices)))

    def devices(self, d: Devices) -> Devices:
        """Return ``d`` with the threads, communicators and collectives of these options."""
        return replace(super().devices(d), one_collective=self.one_collective,
                       nccl=d.nccl.all_direct if self.direct else d.nccl)

    def words(self) -> list[str]:
        """Return the active options as texts."""
        rows = self.copied_rows
        return [*super().words(), f"exchange by {self.exchange}",
                *wire_in_words(self.wire),
                *[f"copies of tables of at most {rows:,} rows"] * (rows > 0)]


def tuning_variants(training: bool, rdma: bool = False, repeats: bool = False,
                    by_rail: bool = False, key_bytes: int = KEY_BYTES[0], wire: str = "float32",
                    copied_rows: Sequence[int] = COPIED_ROWS,
                    threads: int = THREADS) -> tuple[Variants, ...]:
    """Return the alternatives that ``bl-tuned`` searches.

    rdma: whether kernels may exchange data. repeats: whether bags repeat. by_rail: whether NCCL may
    first move bytes inside each node. key_bytes: bytes of a key. wire: the shortest format allowed.
    copied_rows: limits on the rows of copied tables. threads: most threads.
    """
    both, off = (False, True), (False,)
    own = {"exchange": EXCHANGES if rdma else EXCHANGES[1:], "overlap": both,
           "buckets": both if training else off, "copied_rows": copied_rows,
           "one_collective": off if training else both, "direct": both if by_rail else off,
           "communicators": (1, 2), "bags_once": both if repeats else off,
           "wire": wires_to(wire)}
    lookups = tuple({"fused": fused, "joined": joined}
                    for fused, joined in ((True, False), (False, True), (False, False)))
    indices = tuple({"dedupe": dedupe, "host_indices": hosts, "grouped": grouped}
                    for dedupe, hosts, grouped in product(both, both, off if training else both)
                    if not (hosts and (dedupe or grouped)))
    return (lookups, indices,
            *(tuple({name: value} for value in values) for name, values in own.items()),
            *host_variants(threads, key_bytes))


def best(candidates: Iterable[_T], *costs: Callable[[_T], tuple[float, ...]]) -> _T:
    """Return the candidate with the least cost, compared member by member to a picosecond.

    costs: lower bounds of the cost, the cheapest to compute first, and the cost. Candidates are
    tried in the order of the last bound; the search stops when a bound reaches the least cost
    found.
    """
    every, last = list(candidates), len(costs) - 1
    waiting = [(_rounded(costs[0](each)), number, 0) for number, each in enumerate(every)]
    heapify(waiting)
    found: tuple[tuple[float, ...], int] | None = None
    while waiting:
        bound, number, level = heappop(waiting)
        if found is not None and bound >= found[0]:
            break
        own = _rounded(costs[level + 1](every[number]))
        if level + 1 < last:
            heappush(waiting, (own, number, level + 1))
        elif found is None or (own, number) < found:
            found = own, number
    if found is None:
        raise ValueError("candidates must be at least one, not none")
    return every[found[1]]


def _rounded(times: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(us, 6) for us in times)
