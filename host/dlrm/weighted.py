"""Gradients of bags whose keys have weights: each key of such a bag has a gradient of its own."""

import numpy as np

from host.dlrm.dlrm import pool
from host.dlrm.float32 import canonical, quiet
from host.samples import Samples

__all__ = ["rows_once", "sent_gradients"]


def rows_once(samples: Samples, weighted: np.ndarray) -> Samples:
    """Return the samples whose weighted bags have each row once, at its first slot.

    The weight of the row is the sum of its weights, added in slot order in float32. The gradients
    of a bag's keys may then arrive in any order.

    weighted: whether each table has weights: bool ``[tables]``.
    """
    if samples.weights is None or not weighted.any():
        return samples
    bag = np.repeat(np.arange(samples.bag_lengths.size), samples.bag_lengths.reshape(-1))
    mine = np.flatnonzero(weighted[samples.tables])
    order = mine[np.lexsort((samples.rows[mine], bag[mine]))]  # stable: in slot order
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(bag[order]) != 0) | (np.diff(samples.rows[order]) != 0)
    firsts = np.flatnonzero(new)
    kept, weights = ~weighted[samples.tables], samples.weights.copy()
    kept[order[firsts]] = True
    weights[order[firsts]] = pool(weights[order][:, None],
                                  np.diff(np.append(firsts, len(order))))[:, 0]
    lengths = np.bincount(bag[kept], minlength=samples.bag_lengths.size)
    return Samples(samples.dense, samples.labels,
                   lengths.reshape(samples.bag_lengths.shape).astype(np.int32),
                   samples.tables[kept], samples.rows[kept], weights[kept])


@quiet()
def sent_gradients(samples: Samples, gradients: np.ndarray, weighted: np.ndarray,
                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bags with gradients that a GPU sends: number of each bag, sample by sample, its
    keys, and its gradient: int64 ``[b]``, int64 ``[b]``, float32 ``[b, d]``.

    A key of a weighted bag is sent as a bag of one key. Its gradient is the product of the weight
    and the gradient of the bag, rounded to float32.

    gradients: of all bags, float32 ``[n, tables, d]``. weighted: as of `rows_once`, of the tables
    of ``samples``.
    """
    lengths = samples.bag_lengths.reshape(-1).astype(np.int64)
    vectors = gradients.reshape(len(lengths), gradients.shape[-1])
    if samples.weights is None or not weighted.any():
        return np.arange(len(lengths)), lengths, vectors
    heavy = np.tile(weighted, len(samples))
    numbers = np.repeat(np.arange(len(lengths)), np.where(heavy, lengths, 1))
    alone, found = heavy[numbers], vectors[numbers]
    found[alone] = canonical(
        found[alone] * samples.weights[np.repeat(heavy, lengths)][:, None])
    return numbers, np.where(alone, 1, lengths[numbers]), found
