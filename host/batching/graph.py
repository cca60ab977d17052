"""The graph algorithm: samples that the most popular hyperedges join make a mini-batch."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from host.batching.incidence import Incidence
from host.samples import Samples, segment_indices

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Algorithm 1 of the paper (section 3.1), and refinements of what it finds.

    Samples are the nodes of a hypergraph; a key that at least two samples look up is a hyperedge
    that joins them. The ``hyperedges`` that join most of the samples left are selected, ties in
    the order in which their keys arrived; the samples that appear most often in these make the
    mini-batch, in that order, ties by arrival. They are deleted, and so on.

    As it is printed, the algorithm ranks samples by keys that the whole window finds popular, and
    these join samples of different kinds. So each refinement ranks the samples left anew, by the
    hyperedges of the mini-batch just found, that is by the keys that at least two of its samples
    look up; that mini-batch takes the place of the first. It ends early where nothing changes.

    Members
    -------
    hyperedges: the hyperedge threshold n.
    refinements: how often a mini-batch is refined; 0 is the algorithm as it is printed.

    Raises
    ------
    ValueError
        A number is out of range.
    """

    hyperedges: int
    refinements: int = 2

    def __post_init__(self) -> None:
        for name, low in (("hyperedges", 1), ("refinements", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)!r}")

    def __call__(self, window: Samples, size: int) -> Iterator[np.ndarray]:
        """Yield mini-batches of ``size`` samples: their places in ``window``."""
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
    """Which edges are the ``most`` hyperedges of highest degree: bool ``[edges]``."""
    chosen = degree >= 2
    if np.count_nonzero(chosen) <= most:
        return chosen
    least = np.partition(degree, len(degree) - most)[len(degree) - most]
    chosen = degree > least
    chosen[np.flatnonzero(degree == least)[:most - np.count_nonzero(chosen)]] = True
    return chosen


def _highest(score: np.ndarray, size: int) -> np.ndarray:
    """Return the places of the ``size`` highest scores, highest first, ties in their order."""
    return np.argsort(-score, kind="stable")[:size]


def _entries(matrix: Incidence, chosen: np.ndarray) -> np.ndarray:
    """Return the entries of the ``chosen`` samples."""
    return segment_indices(matrix.offsets[chosen], np.diff(matrix.offsets)[chosen])


def _degree_among(matrix: Incidence, chosen: np.ndarray) -> np.ndarray:
    """Return how many of the ``chosen`` samples each edge has."""
    return np.bincount(matrix.edge[_entries(matrix, chosen)], minlength=matrix.edges)


def _kept(matrix: Incidence, kept: np.ndarray) -> Incidence:
    """Return the matrix of the samples ``kept``; edges keep their numbers."""
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(np.diff(matrix.offsets)[kept], out=offsets[1:])
    return Incidence(len(kept), matrix.edges, offsets, matrix.edge[_entries(matrix, kept)])
