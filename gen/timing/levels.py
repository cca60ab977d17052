"""Order in which arrivals are computed: nets by level, and the arcs into each level."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gen.timing.graph import Arcs, Graph
from gen.timing.logic_loop import refuse_loop

__all__ = ["Level", "Levels", "latest_of", "levels_of"]


@dataclass(frozen=True, eq=False)
class Level:
    """Arcs ``first`` to ``last`` (exclusive), which lead to the nets ``targets``.

    Arcs to the same net are adjacent; the arcs of each net begin at ``starts``, relative to
    ``first``. The first ``luts`` arcs pass LUTs.
    """

    first: int
    last: int
    luts: int
    targets: NDArray[np.int32]
    starts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """The ``arcs`` of ``graph`` in order of their levels.

    Members
    -------
    arcs: sorted arcs. No arc leads to a net of its own or an earlier level.
    sources: net where each arc begins.
    levels: levels, in order.
    spans: for each net, the first arc that leads to it, and the last one plus 1.
    """

    graph: Graph
    arcs: Arcs
    sources: NDArray[np.int32]
    levels: tuple[Level, ...]
    spans: NDArray[np.int64]


def levels_of(graph: Graph) -> Levels:
    """Return the arcs of ``graph`` by level. Raises ``ValueError`` with the cells of a loop of
    arcs."""
    arcs = graph.arcs
    sources = graph.loads.nets[arcs.loads]
    level = _levels(sources, arcs.targets, graph.count)
    if (level < 0).any():
        refuse_loop(graph, sources, arcs.targets, level < 0)
    of_arc = level[arcs.targets]
    order = np.lexsort((arcs.targets, ~arcs.lut, of_arc))
    arcs = Arcs(*(array[order] for array in arcs))
    bounds = np.searchsorted(of_arc[order], np.arange(1, level.max(initial=0) + 2))
    levels = []
    spans = np.zeros((graph.count, 2), np.int64)
    for first, last in pairwise(bounds):
        targets = arcs.targets[first:last]
        starts = np.flatnonzero(np.r_[True, targets[1:] != targets[:-1]])
        levels.append(Level(int(first), int(last), int(arcs.lut[first:last].sum()),
                            targets[starts], starts))
        spans[targets[starts]] = np.stack(
            [first + starts, first + np.r_[starts[1:], last - first]], axis=1)
    return Levels(graph, arcs, sources[order], tuple(levels), spans)


def latest_of(arrived: NDArray[np.float64],
              starts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the largest value of each group that begins at ``starts``, and its first index."""
    latest = np.maximum.reduceat(arrived, starts)
    lengths = np.diff(starts, append=len(arrived))
    is_latest = arrived == np.repeat(latest, lengths)
    places = np.where(is_latest, np.arange(len(arrived)), len(arrived))
    return latest, np.minimum.reduceat(places, starts)


def _levels(sources: NDArray, targets: NDArray, count: int) -> NDArray[np.int32]:
    """Return the largest number of consecutive arcs that lead to each net; -1 in and behind a loop.
    """
    missing = np.bincount(targets, minlength=count)
    by_source = np.argsort(sources, kind="stable")
    first = np.searchsorted(sources[by_source], np.arange(count + 1))
    ordered = targets[by_source]
    level = np.full(count, -1, np.int32)
    ready, depth = np.flatnonzero(missing == 0), 0
    while len(ready):
        level[ready] = depth
        lengths = first[ready + 1] - first[ready]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached, times = np.unique(ordered[np.repeat(first[ready], lengths) + inside],
                                   return_counts=True)
        missing[reached] -= times
        ready, depth = reached[missing[reached] == 0], depth + 1
    return level
