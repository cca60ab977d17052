"""Order in which arrivals are known: nets by level, and the arcs into each level."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gen.timing.graph import Arcs, Graph
from gen.timing.logic_loop import refuse_loop

__all__ = ["Level", "Levels", "levels_of"]


@dataclass(frozen=True, eq=False)
class Level:
    """The arcs ``first`` to ``last`` (not included) lead to the nets ``targets``; those of a net
    are next to each other and begin at ``starts``, from ``first`` on. The arcs through LUTs are the
    first ``luts`` ones."""

    first: int
    last: int
    luts: int
    targets: NDArray[np.int32]
    starts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """``arcs`` of ``graph`` in order of their levels, the nets that they come from (``sources``),
    and the ``levels``, in order: no arc leads to a net of its own or an earlier level.

    ``spans``: for each net, the arcs that lead to it, first and behind the last.
    """

    graph: Graph
    arcs: Arcs
    sources: NDArray[np.int32]
    levels: tuple[Level, ...]
    spans: NDArray[np.int64]


def levels_of(graph: Graph) -> Levels:
    """Return the arcs of ``graph`` by level; ``ValueError`` names the cells of a loop of them."""
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


def _levels(sources: NDArray, targets: NDArray, count: int) -> NDArray[np.int32]:
    """Return the most arcs that lead to each net in a row; -1 in and behind a loop."""
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
