"""How alike samples are: skew of keys, unique keys per mini-batch, and greedy selection."""

import math
from dataclasses import dataclass

import numpy as np

from .samples import Samples, segment_indices

__all__ = ["Skew", "file_order", "greedy_order", "greedy_saving", "skew", "uniques_per_batch"]


@dataclass(frozen=True)
class Skew:
    """Shares of accesses.

    Members
    -------
    accesses, unique: accesses, and keys among them.
    top1, top10: share of the accesses that go to the most used 1 % and 10 % of the keys.
    """

    accesses: int
    unique: int
    top1: float
    top10: float


def skew(samples: Samples) -> Skew:
    """Return how unevenly keys are used; 1 % and 10 % of them are rounded up to whole keys."""
    counts = np.sort(np.unique(samples.keys, return_counts=True)[1])[::-1]
    total = int(counts.sum())

    def share(part: float) -> float:
        return float(counts[:math.ceil(len(counts) * part)].sum() / max(1, total))

    return Skew(total, len(counts), share(0.01), share(0.1))


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
    _, key = np.unique(samples.keys, return_inverse=True)
    batch_of_key = np.repeat(of_sample, np.diff(samples.key_offsets))
    pairs = np.unique(batch_of_key * (key.max(initial=0) + 1) + key)
    return np.bincount(pairs // (key.max(initial=0) + 1), minlength=len(sizes))


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
