"""The greedy algorithm: each step adds the sample that shares most keys with the mini-batch."""

from collections.abc import Iterator

import numpy as np

from host.batching.incidence import Incidence
from host.samples import Samples, segment_indices

__all__ = ["greedy_order"]

_GONE = -1 << 40
"""Added to the score of a used sample, to exclude it."""


def greedy_order(window: Samples, size: int) -> Iterator[np.ndarray]:
    """Yield mini-batches of ``size`` samples, chosen greedily: their positions in ``window``.

    A mini-batch starts with the oldest remaining sample. Then the sample that shares most keys with
    the mini-batch is added, ties by arrival, until it is full. A repeated key of a sample counts
    once.
    """
    matrix = Incidence.of(window)
    n, offsets, edge = matrix.samples, matrix.offsets, matrix.edge
    # The inverted index: the samples of each edge.
    holders = matrix.sample[np.argsort(edge, kind="stable")]
    held_by = matrix.degree
    held_first = np.cumsum(held_by) - held_by

    taken = np.zeros(n, bool)
    oldest = 0
    for done in range(0, n, size):
        inside = np.zeros(matrix.edges, bool)
        score = np.zeros(n, np.int64)
        score[taken] = _GONE
        while taken[oldest]:
            oldest += 1
        chosen, order = oldest, np.empty(min(size, n - done), np.int64)
        for position in range(len(order)):
            order[position] = chosen
            taken[chosen] = True
            score[chosen] = _GONE
            edges = edge[offsets[chosen]:offsets[chosen + 1]]
            new = edges[~inside[edges]]
            inside[new] = True
            touched = holders[segment_indices(held_first[new], held_by[new])]
            score += np.bincount(touched, minlength=n)
            chosen = int(score.argmax())  # the first maximum: ties go by arrival
        yield order
