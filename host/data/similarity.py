"""Similarity of samples: skew of keys, and unique keys per mini-batch."""

import numpy as np

from host.data.key_counts import KeyCounts, Skew
from host.samples import KEY_ROW_BITS, Samples, concatenate

__all__ = ["BatchUniques", "Skew", "skew", "uniques_per_batch"]

_KEY_BITS = KEY_ROW_BITS + 12
_MOST_GROUPS = 1 << (63 - _KEY_BITS)


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
    batch_of_key = np.repeat(np.arange(len(samples)) // batch, np.diff(samples.key_offsets))
    count = -(-len(samples) // batch)
    keys, found = samples.keys, np.empty(count, np.int64)
    for first in range(0, count, _MOST_GROUPS):
        group = batch_of_key - first
        inside = (group >= 0) & (group < _MOST_GROUPS)
        last = min(first + _MOST_GROUPS, count)
        found[first:last] = _uniques(group[inside], keys[inside], last - first)
    return found


def _uniques(groups: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    """Return the distinct keys of each of ``count`` groups, at most `_MOST_GROUPS`."""
    pairs = groups << _KEY_BITS | keys
    pairs.sort()
    first = np.ones(len(pairs), bool)
    np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
    return np.bincount(pairs[first] >> _KEY_BITS, minlength=count)


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
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch!r}")
        self.batch = batch
        self.batches = self.lookups = self.unique = 0
        self._held: list[Samples] = []
        self._count = 0

    def add(self, samples: Samples) -> None:
        """Count the next samples."""
        self._held.append(samples)
        self._count += len(samples)
        full = self._count // self.batch * self.batch
        if full:
            joined = concatenate(self._held)
            self._take(joined.slice(0, full))
            self._held, self._count = [joined.slice(full, len(joined))], len(joined) - full

    def finish(self) -> None:
        """End the stream: count a short mini-batch if it is the only one."""
        if not self.batches and self._count:
            self._take(concatenate(self._held))

    def _take(self, samples: Samples) -> None:
        found = uniques_per_batch(samples, self.batch)
        self.batches += len(found)
        self.lookups += len(samples.rows)
        self.unique += int(found.sum())
