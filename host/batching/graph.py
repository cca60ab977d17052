"""The graph algorithm: mini-batches of the samples joined by the most popular hyperedges."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from host.batching.incidence import Incidence
from host.bounds import check_least
from host.samples import Samples, segment_indices

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Algorithm 1 of the paper (section 3.1), with refinements.

    Samples are the nodes of a hypergraph. A key that at least two samples look up is a hyperedge
    that joins them. The algorithm selects the ``hyperedges`` hyperedges that join most remaining
    samples; ties go by arrival of their keys. The samples that appear most often in these
    hyperedges form the mini-batch, in that order; ties go by arrival. The samples are deleted, and
    the algorithm repeats.

    As printed, the algorithm ranks samples by keys that are popular in the whole window, which
    joins samples of different kinds. Each refinement therefore ranks the remaining samples again by
    the hyperedges of the mini-batch just found: the keys that at least two of its samples look up.
    The result replaces that mini-batch. Refinement ends early if nothing changes.

    Members
    -------
    hyperedges: the hyperedge threshold n.
    refinements: rounds of refinement per mini-batch; 0 is the algorithm as printed.

    Raises
    ------
    ValueError
        A number is out of range.
    """

    hyperedges: int
    refinements: int = 2

    def __post_init__(self) -> None:
        check_least(self, hyperedges=1, refinements=0)

    def __call__(self, window: Samples, size: int) -> Iterator[np.ndarray]:
        """Yield mini-batches of ``size`` samples: their positions in ``window``."""
        place = np.arange(len(window))
        matrix = Incidence.of(window)
        degree = matrix.degree
        while len(place):
            chosen = _highest(matrix.among(_popular(degree, self.hyperedges)), size)
            for _ in range(self.refinements):
                before, chosen = chosen, _highest(
                    matrix.among(_degree_among(matrix, chosen) >= 2), size)
                if np.array_equal(before, chosen):
                    break
            yield place[chosen]
            degree = degree - _degree_among(matrix, chosen)
            left = np.ones(len(place), bool)
            left[chosen] = False
            matrix, place = _kept(matrix, np.flatnonzero(left)), place[left]


def _popular(degree: np.ndarray, most: int) -> np.ndarray:
    """Return which edges are the ``most`` hyperedges of highest degree: bool ``[edges]``."""
    chosen = degree >= 2
    if np.count_nonzero(chosen) <= most:
        return chosen
    least = np.partition(degree, len(degree) - most)[len(degree) - most]
    chosen = degree > least
    chosen[np.flatnonzero(degree == least)[:most - np.count_nonzero(chosen)]] = True
    return chosen


def _highest(score: np.ndarray, size: int) -> np.ndarray:
    """Return the positions of the ``size`` highest scores, highest first, ties in order."""
    return np.argsort(-score, kind="stable")[:size]


def _entries(matrix: Incidence, chosen: np.ndarray) -> np.ndarray:
    """Return the entries of the ``chosen`` samples."""
    return segment_indices(matrix.offsets[chosen], np.diff(matrix.offsets)[chosen])


def _degree_among(matrix: Incidence, chosen: np.ndarray) -> np.ndarray:
    """Return each edge's degree among the ``chosen`` samples."""
    return np.bincount(matrix.edge[_entries(matrix, chosen)], minlength=matrix.edges)


def _kept(matrix: Incidence, kept: np.ndarray) -> Incidence:
    """Return the matrix of the samples ``kept``; edges keep their numbers."""
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(np.diff(matrix.offsets)[kept], out=offsets[1:])
    return Incidence(len(kept), matrix.edges, offsets, matrix.edge[_entries(matrix, kept)])
