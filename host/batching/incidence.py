"""Incidence matrix of the hypergraph of samples and keys."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from host.samples import Samples

__all__ = ["Incidence"]


@dataclass(frozen=True)
class Incidence:
    """The nonzero entries of an incidence matrix: samples are nodes, keys are edges (paper, section
    3.1).

    A key that occurs twice in a sample's bag is a single entry.

    Members
    -------
    samples, edges: their numbers. Edges are numbered in arrival order of their keys.
    offsets: first entry of each sample, then the number of entries: int64 ``[samples + 1]``.
    edge: edge of each entry, sample by sample: int64.
    """

    samples: int
    edges: int
    offsets: np.ndarray
    edge: np.ndarray

    @classmethod
    def of(cls, window: Samples) -> "Incidence":
        """Return the incidence matrix of the samples of a window."""
        _, first, edge = np.unique(window.keys, return_index=True, return_inverse=True)
        edges = len(first)
        arrived = np.empty(edges, np.int64)
        arrived[np.argsort(first)] = np.arange(edges)
        edge, offsets = arrived[edge], window.key_offsets
        if int(window.bag_lengths.max(initial=0)) > 1:
            sample = np.repeat(np.arange(len(window)), np.diff(offsets))
            pairs = np.sort(sample * edges + edge)  # several times as fast as np.unique's hashes
            sample, edge = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], edges)
            offsets = np.searchsorted(sample, np.arange(len(window) + 1))
        return cls(len(window), edges, offsets, edge)

    @cached_property
    def sample(self) -> np.ndarray:
        """The sample of each entry: int64."""
        return np.repeat(np.arange(self.samples), np.diff(self.offsets))

    @property
    def degree(self) -> np.ndarray:
        """Number of samples of each edge: int64 ``[edges]``."""
        return np.bincount(self.edge, minlength=self.edges)

    def among(self, chosen: np.ndarray) -> np.ndarray:
        """Return each sample's number of edges that are ``chosen`` (bool ``[edges]``)."""
        counts = np.zeros(len(self.edge) + 1, np.int64)
        np.cumsum(chosen[self.edge], out=counts[1:])
        return np.diff(counts[self.offsets])
