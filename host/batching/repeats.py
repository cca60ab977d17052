"""Bags that repeat in a share: equal bags of a table, with the same number and order of keys, and
the same bits of every weight."""

import numpy as np

from host.samples import KEY_ROW_BITS, Samples, segment_indices, share_sizes

__all__ = ["REPEATS", "first_bags", "repeated_bags", "sent_bags"]

REPEATS = ("send", "neighbours", "indices")
"""Repeats that are found: none, repeats of the sample before, or repeats of any earlier sample."""


def first_bags(samples: Samples, nodes: int, found: str,
               tables: np.ndarray | None = None) -> np.ndarray:
    """Return the sample whose bag stands for each bag: int64 ``[samples, tables]``.

    A bag that repeats no bag stands for itself. All bags that repeat a bag have the same sample. An
    empty bag neither repeats a bag nor is repeated.

    nodes: number of contiguous shares; no bag repeats a bag of another share. found: one of
    `REPEATS`. tables: whether the bags of each table may repeat, bool ``[tables]``; None for all.
    """
    own = np.broadcast_to(np.arange(len(samples))[:, None], samples.bag_lengths.shape)
    if tables is not None:
        return np.where(tables, first_bags(samples, nodes, found), own)
    if found == "indices":
        return _earliest(samples, nodes, own)
    if found == "neighbours":
        new = ~repeated_bags(samples, nodes) | (samples.bag_lengths == 0)
        return np.maximum.accumulate(np.where(new, own, 0), axis=0)
    return own


def sent_bags(samples: Samples, nodes: int, found: str) -> Samples:
    """Return the samples with empty bags in place of bags that repeat a bag.

    The parameters are those of :func:`first_bags`.
    """
    if found == REPEATS[0]:
        return samples
    first = first_bags(samples, nodes, found)
    return samples.of_bags(first == np.arange(len(samples))[:, None])


def repeated_bags(samples: Samples, nodes: int) -> np.ndarray:
    """Return whether each bag equals the bag of its table in the preceding sample of its share.

    bool ``[samples, tables]``. Keys and their weights are compared in order. Empty bags are equal.
    """
    lengths = samples.bag_lengths
    same = np.zeros(lengths.shape, bool)
    if len(lengths) < 2:
        return same
    same[1:] = lengths[1:] == lengths[:-1]
    same[np.cumsum(share_sizes(len(samples), nodes))[:-1].clip(max=len(lengths) - 1)] = False
    begins = samples.bag_offsets[:-1].reshape(lengths.shape)
    later = np.flatnonzero(same)
    sizes = lengths.reshape(-1)[later]
    first, second = (segment_indices(of.reshape(-1)[later - shift], sizes)
                     for of, shift in ((begins, lengths.shape[1]), (begins, 0)))
    differs = samples.rows[first] != samples.rows[second]
    if samples.weights is not None:
        bits = samples.weights.view(np.uint32)
        differs |= bits[first] != bits[second]
    same.reshape(-1)[np.repeat(later, sizes)[differs]] = False
    return same


def _earliest(samples: Samples, nodes: int, own: np.ndarray) -> np.ndarray:
    """Return the first sample of each share with an equal bag, for each bag.

    Bags that agree so far are a group. Each key in turn, and then its weight, divides the groups; a
    group of one bag is left out.
    """
    n, tables = samples.bag_lengths.shape
    lengths, begins = samples.bag_lengths.reshape(-1).astype(np.int64), samples.bag_offsets[:-1]
    share = np.repeat(np.arange(nodes), share_sizes(n, nodes))
    start = (share[:, None] * tables + np.arange(tables)).reshape(-1)
    bags = np.flatnonzero(lengths)
    bags, group = _shared(bags, start[bags] * (int(lengths.max(initial=0)) + 1) + lengths[bags])
    found = own.copy()
    for key in range(int(lengths.max(initial=0))):
        bags, group = _shared(bags, group << KEY_ROW_BITS | samples.rows[begins[bags] + key])
        if samples.weights is not None:
            bits = samples.weights[begins[bags] + key].view(np.uint32).astype(np.int64)
            bags, group = _shared(bags, group << 32 | bits)
        ended = lengths[bags] == key + 1
        # The bags of a group have the same length, and ascend.
        _, first, member = np.unique(group[ended], return_index=True, return_inverse=True)
        equal = bags[ended]
        found.reshape(-1)[equal] = equal[first][member] // tables
        bags, group = bags[~ended], group[~ended]
    return found


def _shared(bags: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bags whose ``group`` has several bags, and the rank of their groups."""
    _, rank, counts = np.unique(group, return_inverse=True, return_counts=True)
    several = counts[rank] > 1
    return bags[several], rank[several]
