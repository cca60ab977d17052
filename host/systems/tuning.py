"""Options of ``bl-tuned``, and the search for the best combination."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TypeVar

from host.systems.charge import longest_us
from host.systems.options import COPIED_ROWS
from host.systems.schedule import busy_us
from host.systems.stage import Step

__all__ = ["Tuning", "best", "least_interval_us", "tunings"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Tuning:
    """Optional optimisations of a baseline.

    Members
    -------
    fused: a batched operator looks up all tables of a node; another updates them.
    nccl: GPUs exchange data and sum gradients between their memories. Otherwise MPI exchanges data
        through host memory, and the software profile selects the all-reduce.
    dedupe: a requester sends each key once, and a gradient per key. The host must wait for the
        number of keys, which ends a graph.
    overlap: the bottom MLP and the all-reduce of the MLPs overlap the exchange of vectors.
    buckets: the all-reduce of the top MLP overlaps the backward pass of the bottom MLP.
    copied_rows: every node copies each table of at most this many rows; training all-reduces their
        gradients.
    joined: the tables of a node form one table; excludes ``fused``.
    host_indices: MPI exchanges indices between hosts before they are copied to the GPU; excludes
        ``dedupe``.
    grouped: an NCCL call exchanges the indices of a mini-batch and the vectors of an earlier one;
        inference only, with several mini-batches in flight.
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
        """Whether the options are consistent and not equivalent to another tuning."""
        return not ((self.fused and self.joined) or (self.host_indices and self.dedupe)
                    or (self.grouped and (self.host_indices or not self.nccl))
                    or not (self.nccl or self.dedupe or self.host_indices))


@lru_cache(maxsize=64)
def tunings(training: bool, near: Tuning | None = None) -> tuple[Tuning, ...]:
    """Return every tuning; inference excludes ``buckets``, training excludes ``grouped``.

    near: return only tunings that differ from it in at most two members, not counting ``nccl``.
    """
    both, off = (False, True), (False,)
    every = (Tuning(*chosen) for chosen in product(
        *[both] * 4, both if training else off, COPIED_ROWS, both, both,
        off if training else both))
    return tuple(tuning for tuning in every if tuning.possible and (
        near is None or sum(a != b for a, b in zip(
            astuple(replace(tuning, nccl=near.nccl)), astuple(near))) <= 2))


def least_interval_us(steps: Sequence[Step], in_flight: int) -> float:
    """Return a lower bound of the mean interval of ``steps``, in microseconds per step.

    The bound is the busiest resource, or the mean step length divided by ``in_flight``.
    """
    alone = sum(map(longest_us, steps)) / in_flight
    return max(alone, *busy_us(steps).values(), 0.0) / len(steps)


def best(candidates: Iterable[_T], least: Callable[[_T], tuple[float, ...]],
         cost: Callable[[_T], tuple[float, ...]]) -> _T:
    """Return the candidate with the least ``cost``, compared member by member to a picosecond.

    least: a cheap lower bound of the cost. Candidates are tried in its order; the search stops when
    the bound reaches the least cost found.
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
