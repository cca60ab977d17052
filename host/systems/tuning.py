"""The options of ``bl-tuned``, and the search for the best of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TypeVar

from host.systems.charge import longest_us
from host.systems.options import COPIED_ROWS
from host.systems.stage import Step

__all__ = ["Tuning", "best", "least_interval_us", "tunings"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Tuning:
    """Optional optimisations of a baseline.

    Members
    -------
    fused: one batched operator looks up, and one updates, all tables of a node.
    nccl: GPUs exchange data between their memories, and sum gradients so; otherwise MPI exchanges
        it through host memory, and gradients are summed as the software profile says.
    dedupe: a requester asks for each key once, and sends one gradient for it. The host has to wait
        for the number of keys, which ends a graph.
    overlap: the bottom MLP and the sum of the MLPs' gradients overlap the exchange of vectors.
    buckets: gradients of the top MLP are summed over the nodes while those of the bottom MLP are
        computed, in a collective of their own.
    copied_rows: every node has a copy of each table of at most so many rows; in training their
        gradients are summed over the nodes, like those of the MLPs.
    joined: the tables of a node are one table; instead of ``fused``.
    host_indices: MPI exchanges indices between the hosts before they are copied to the GPU, which
        then can't dedupe them.
    grouped: one call of NCCL exchanges the indices of a mini-batch and the vectors of an earlier
        one; in inference, with several in flight.
    """

    fused: bool = True
    nccl: bool = True
    dedupe: bool = True
    overlap: bool = True
    buckets: bool = False
    copied_rows: int = 10_000
    joined: bool = False
    host_indices: bool = False
    grouped: bool = False

    @property
    def possible(self) -> bool:
        """Whether its members go together, and no other tuning is the same."""
        return not ((self.fused and self.joined) or (self.host_indices and self.dedupe)
                    or (self.grouped and (self.host_indices or not self.nccl))
                    or not (self.nccl or self.dedupe or self.host_indices))


@lru_cache(maxsize=64)
def tunings(training: bool, near: Tuning | None = None) -> tuple[Tuning, ...]:
    """Return every tuning; inference has no gradients to sum in buckets, training no mini-batch
    whose exchanges could be grouped. ``near``: only those that differ from it in at most two
    members, whatever the library."""
    both, off = (False, True), (False,)
    every = (Tuning(*chosen) for chosen in product(
        *[both] * 4, both if training else off, COPIED_ROWS, both, both,
        off if training else both))
    return tuple(tuning for tuning in every if tuning.possible and (
        near is None or sum(a != b for a, b in zip(
            astuple(replace(tuning, nccl=near.nccl)), astuple(near))) <= 2))


def least_interval_us(steps: Sequence[Step], in_flight: int) -> float:
    """Return what the mean time from one of these steps to the next cannot be below, whatever
    follows what: no resource serves them faster, and no more than ``in_flight`` are under way."""
    busy: dict = {}
    for step in steps:
        for stage in step.stages:
            for name, share in stage.uses:
                busy[name] = busy.get(name, 0.0) + share * stage.us
    alone = sum(map(longest_us, steps)) / in_flight
    return max(alone, *busy.values(), 0.0) / len(steps)


def best(candidates: Iterable[_T], least: Callable[[_T], tuple[float, ...]],
         cost: Callable[[_T], tuple[float, ...]]) -> _T:
    """Return the candidate of the least ``cost``, compared to a picosecond, member by member.

    ``least`` is a bound below the cost that takes less to compute: candidates are tried in its
    order, and those whose bound is not below the least cost so far are left out.
    """
    bounds = sorted(((_rounded(least(candidate)), number, candidate)
                     for number, candidate in enumerate(candidates)), key=lambda each: each[:2])
    found: tuple[tuple[float, ...], int] | None = None
    chosen = bounds[0][2]
    for bound, number, candidate in bounds:
        if found is not None and bound >= found[0]:
            break
        own = _rounded(cost(candidate)), number
        if found is None or own < found:
            found, chosen = own, candidate
    return chosen


def _rounded(times: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(us, 6) for us in times)
