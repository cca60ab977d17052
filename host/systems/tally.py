"""Counts of a mini-batch by share and table, from which the counts of any placement follow."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from host.batching.repeats import repeated_bags
from host.distinct import distinct_of_sorted
from host.placement.shard import OWNER_BITS, key_hash
from host.samples import KEY_ROW_BITS, Samples, share_sizes

__all__ = ["Counts", "Tally"]


class Counts(NamedTuple):
    """Counts of each share and table, int64 ``[nodes, tables]``; of hashed tables also of each
    owner, ``[nodes, tables, owners]``.

    keys, bags: lookups, and non-empty bags; a bag with rows at several owners counts at each.
    distinct: distinct keys of the share. unique: distinct keys of the mini-batch, without the axis
    of the shares. new_keys, new_bags: without repeated bags, see
    :func:`host.batching.repeats.repeated_bags`.
    """

    keys: np.ndarray
    bags: np.ndarray
    distinct: np.ndarray
    unique: np.ndarray
    new_keys: np.ndarray
    new_bags: np.ndarray


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of a mini-batch that is split over ``nodes``.

    Its keys are sorted once, and once more for each number of owners over which tables are hashed.
    The counts of a placement then need about ``nodes`` x ``nodes`` x tables additions.

    Members
    -------
    samples, nodes: the mini-batch and its shares.
    """

    samples: Samples
    nodes: int
    _found: dict[int, Counts] = field(default_factory=dict, repr=False)

    @property
    def counts(self) -> Counts:
        """Counts of tables that are not hashed."""
        if 0 not in self._found:
            self._found[0] = Counts(*(values[..., 0] for values in self._counted(1)))
        return self._found[0]

    def hashed(self, owners: int) -> Counts:
        """Return the counts of tables that are hashed over ``owners`` nodes."""
        if owners not in self._found:
            self._found[owners] = self._counted(owners)
        return self._found[owners]

    def _counted(self, owners: int) -> Counts:
        """Sort the keys of each share; several owners are counted apart."""
        tables = self.samples.table_count
        repeated = repeated_bags(self.samples, self.nodes)
        some = bool(repeated.any())
        rows, every, first = [], [], 0
        for size in share_sizes(len(self.samples), self.nodes):
            share = self.samples.slice(first, first + size)
            new = ~repeated[first:first + size]
            first += size
            keys = share.keys
            owner = _owner(keys, owners)
            found = _bags(share, owner, owners, np.ones_like(new))
            news = _bags(share, owner, owners, new) if some else found
            keys.sort()
            every.append(distinct_of_sorted(keys))
            rows.append((*found, _by_table(every[-1], owners, tables), *news))
        merged = np.concatenate(every)
        merged.sort(kind="stable")  # merges the sorted keys of the shares
        unique = _by_table(distinct_of_sorted(merged), owners, tables)
        keys, bags, distinct, new_keys, new_bags = (np.array(each) for each in zip(*rows))
        return Counts(keys, bags, distinct, unique, new_keys, new_bags)


def _owner(keys: np.ndarray, owners: int) -> np.ndarray | None:
    """Return which of ``owners`` nodes has each key; None if there is a single owner."""
    if owners == 1:
        return None
    low = key_hash(keys >> KEY_ROW_BITS, keys & ((1 << KEY_ROW_BITS) - 1)) & np.uint32(
        (1 << OWNER_BITS) - 1)
    return low.astype(np.int64) * owners >> OWNER_BITS


def _by_table(keys: np.ndarray, owners: int, tables: int) -> np.ndarray:
    """Return the number of keys by table and owner; ``keys`` are sorted."""
    owner = _owner(keys, owners)
    if owner is None:
        ends = np.searchsorted(keys, np.arange(tables + 1, dtype=np.int64) << KEY_ROW_BITS)
        return np.diff(ends)[:, None]
    return np.bincount((keys >> KEY_ROW_BITS) * owners + owner,
                       minlength=tables * owners).reshape(tables, owners)


def _bags(share: Samples, owner: np.ndarray | None, owners: int,
          counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys and the bags of a share by table and owner.

    ``counted``: whether each bag counts, ``[samples, tables]``.
    """
    lengths, tables = share.bag_lengths, share.table_count
    if owner is None:
        lengths = lengths * counted
        return (lengths.sum(axis=0, dtype=np.int64)[:, None],
                np.count_nonzero(lengths, axis=0)[:, None])
    bag = np.repeat(np.arange(lengths.size), lengths.reshape(-1))
    mine = counted.reshape(-1)[bag]
    pair = bag[mine] * owners + owner[mine]
    there = np.zeros(lengths.size * owners, bool)
    there[pair] = True
    return (np.bincount(pair % (tables * owners), minlength=tables * owners).reshape(
        tables, owners), np.count_nonzero(there.reshape(-1, tables, owners), axis=0))
