"""Baselines of batching: file order and key order."""

from collections.abc import Iterator

import numpy as np

from host.samples import Samples

__all__ = ["file_order", "key_order", "split_runs"]


def split_runs(order: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield runs of ``size`` entries of ``order``; the last may be shorter."""
    for first in range(0, len(order), size):
        yield order[first:first + size]


def file_order(window: Samples, size: int) -> Iterator[np.ndarray]:
    """Yield mini-batches of ``size`` samples in arrival order: their positions in ``window``."""
    return split_runs(np.arange(len(window)), size)


def key_order(window: Samples, size: int) -> Iterator[np.ndarray]:
    """Yield mini-batches of ``size`` samples in the lexicographic order of their keys.

    Samples are compared by their first keys, then by their second keys, and so on; a prefix comes
    before a longer sample, and equal samples keep their arrival order.
    """
    offsets, lengths = window.key_offsets, np.diff(window.key_offsets)
    _, key = np.unique(window.keys, return_inverse=True)
    base = int(key.max(initial=-1)) + 2
    group = np.zeros(len(window), np.int64)  # rank by the keys compared so far
    for at in range(int(lengths.max(initial=0))):
        value = np.zeros(len(window), np.int64)
        on = lengths > at
        value[on] = key[offsets[:-1][on] + at] + 1
        ranks, group = np.unique(group * base + value, return_inverse=True)
        if len(ranks) == len(window):
            break
    yield from split_runs(np.argsort(group, kind="stable"), size)
