"""Similarity of samples: skew of keys, and unique keys per mini-batch."""

from itertools import pairwise

import numpy as np

from host.data.key_counts import KeyCounts, Skew
from host.distinct import distinct
from host.samples import Samples

__all__ = ["BatchUniques", "Skew", "skew", "uniques_per_batch"]


def skew(samples: Samples) -> Skew:
    """Return the exact distribution of key uses.

    See :meth:`host.data.key_counts.KeyCounts.skew`.
    """
    counts = KeyCounts(most=None)
    counts.add(samples)
    return counts.skew()


def uniques_per_batch(samples: Samples, batch: int) -> np.ndarray:
    """Return the unique keys of each mini-batch: int64 ``[mini-batches]``.

    Mini-batches are runs of ``batch`` consecutive samples; the last may be short.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}")
    keys = samples.keys
    bounds = np.append(samples.key_offsets[:-1:batch], len(keys))
    return np.array([len(distinct(keys[first:last])) for first, last in pairwise(bounds)],
                    np.int64)


class BatchUniques:
    """Unique keys per mini-batch of a stream of samples, in stream order.

    Parameters
    ----------
    batch: samples of a mini-batch.

    Members
    -------
    batches, lookups, unique: full mini-batches so far, their lookups, and the sum of their unique
        keys. An incomplete mini-batch counts only if no mini-batch is full.
    """

    def __init__(self, batch: int):
        self.batch = batch
        self.batches = self.lookups = self.unique = 0

    def add(self, samples: Samples) -> None:
        """Count the next samples: whole mini-batches, except at the end of the stream."""
        full = len(samples) // self.batch * self.batch
        samples = samples.slice(0, full if full or self.batches else len(samples))
        found = uniques_per_batch(samples, self.batch)
        self.batches += len(found)
        self.lookups += len(samples.rows)
        self.unique += int(found.sum())
