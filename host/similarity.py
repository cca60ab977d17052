"""How alike samples are: skew of keys, unique keys per mini-batch, and greedy selection."""

import numpy as np

from .key_counts import KeyCounts, Skew
from .samples import KEY_ROW_BITS, Samples, concatenate, segment_indices

__all__ = ["BatchUniques", "Skew", "file_order", "greedy_order", "greedy_saving", "skew",
           "uniques_per_batch"]

_KEY_BITS = KEY_ROW_BITS + 12
_MOST_GROUPS = 1 << (63 - _KEY_BITS)


def skew(samples: Samples) -> Skew:
    """Return how unevenly keys are used, exactly; see :meth:`host.key_counts.KeyCounts.skew`."""
    counts = KeyCounts(most=None)
    counts.add(samples)
    return counts.skew()


def uniques_per_batch(samples: Samples, batch: int, order: np.ndarray | None = None,
                      sizes: np.ndarray | None = None) -> np.ndarray:
    """Return the unique keys of each mini-batch: int64 ``[mini-batches]``.

    Mini-batches are runs of ``batch`` samples in ``order`` (default: as they come), the last may
    be short; or runs of ``sizes``.
    """
    n = len(samples)
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}")
    order = np.arange(n) if order is None else order
    if sizes is None:
        sizes = np.full(-(-n // batch), batch)
        sizes[-1:] = n - batch * (len(sizes) - 1)
    of_sample = np.empty(n, np.int64)
    of_sample[order] = np.repeat(np.arange(len(sizes)), sizes)
    batch_of_key = np.repeat(of_sample, np.diff(samples.key_offsets))
    keys, found = samples.keys, np.empty(len(sizes), np.int64)
    for first in range(0, len(sizes), _MOST_GROUPS):
        group = batch_of_key - first
        inside = (group >= 0) & (group < _MOST_GROUPS)
        last = min(first + _MOST_GROUPS, len(sizes))
        found[first:last] = _uniques(group[inside], keys[inside], last - first)
    return found


def _uniques(groups: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    """Return the different keys of each of ``count`` groups, at most `_MOST_GROUPS`."""
    pairs = groups << _KEY_BITS | keys
    pairs.sort()
    first = np.ones(len(pairs), bool)
    np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
    return np.bincount(pairs[first] >> _KEY_BITS, minlength=count)


class BatchUniques:
    """Unique keys per mini-batch of a stream of samples, in its order.

    Parameters
    ----------
    batch: samples of a mini-batch.

    Members
    -------
    batches, lookups, unique: full mini-batches so far, their lookups, and the sum of the different
        keys of each. Samples that do not fill a mini-batch are left out, unless they are the only
        ones.
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
        """Count the only mini-batch where it is short."""
        if not self.batches and self._count:
            self._take(concatenate(self._held))

    def _take(self, samples: Samples) -> None:
        found = uniques_per_batch(samples, self.batch)
        self.batches += len(found)
        self.lookups += len(samples.rows)
        self.unique += int(found.sum())


def file_order(count: int, batch: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of arrival and the mini-batch sizes that a drained window gives."""
    sizes = []
    for first in range(0, count, window):
        held = min(window, count - first)
        sizes += [batch] * (held // batch) + [held % batch] * (held % batch > 0)
    return np.arange(count), np.array(sizes, np.int64)


def greedy_order(samples: Samples, batch: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Form mini-batches greedily; return the order of the samples and the mini-batch sizes.

    A window of ``window`` samples is loaded. A mini-batch starts with the oldest sample left;
    then the sample with most of its keys already in the mini-batch is added, ties by arrival,
    until it has ``batch`` samples. So on until the window is drained, then the next is loaded. The
    keys of a sample are counted once each.
    """
    if not 1 <= batch <= window:
        raise ValueError(f"batch must be between 1 and the window {window}, not {batch!r}")
    order = [first + _drain(samples.slice(first, min(first + window, len(samples))), batch)
             for first in range(0, len(samples), window)]
    sizes = file_order(len(samples), batch, window)[1]
    return np.concatenate(order) if order else np.zeros(0, np.int64), sizes


def _drain(window: Samples, batch: int) -> np.ndarray:
    """Order in which greedy selection takes the samples of one window."""
    n = len(window)
    of_key = np.repeat(np.arange(n), np.diff(window.key_offsets))
    _, key = np.unique(window.keys, return_inverse=True)
    pairs = np.unique(of_key * (key.max(initial=0) + 1) + key)
    sample, key = np.divmod(pairs, key.max(initial=0) + 1)
    # Keys of each sample, and samples of each key (the inverted index).
    key_first = np.searchsorted(sample, np.arange(n + 1))
    by_key = np.argsort(key, kind="stable")
    holders = sample[by_key]
    held_by = np.bincount(key)
    held_first = np.cumsum(held_by) - held_by

    taken = np.zeros(n, bool)
    order = np.empty(n, np.int64)
    oldest = 0
    for position in range(n):
        if position % batch == 0:
            inside = np.zeros(len(held_by), bool)
            score = np.zeros(n, np.int64)
            score[taken] = -1 << 40
            while taken[oldest]:
                oldest += 1
            chosen = oldest
        else:
            chosen = int(score.argmax())  # the first of the largest: ties go by arrival
        order[position] = chosen
        taken[chosen] = True
        score[chosen] = -1 << 40
        keys = key[key_first[chosen]:key_first[chosen + 1]]
        new = keys[~inside[keys]]
        inside[new] = True
        touched = holders[segment_indices(held_first[new], held_by[new])]
        score += np.bincount(touched, minlength=n)
    return order


def greedy_saving(samples: Samples, batch: int = 128, window: int = 2048) -> float:
    """Return the share of unique keys per mini-batch that greedy selection saves against the
    order of the file, averaged over all mini-batches until each window is drained."""
    plain = uniques_per_batch(samples, batch, *file_order(len(samples), batch, window))
    greedy = uniques_per_batch(samples, batch, *greedy_order(samples, batch, window))
    return 1 - float(greedy.mean() / plain.mean())
