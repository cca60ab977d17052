"""The bags of a step with owner-pooled tables: bags for the NICs, and the nodes' own bags."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.bags import BagList, bag_queries
from host.wire.packets import record_fields
from rtl.formats import QueryRecord, RecordKind

__all__ = ["OwnerPooling", "share_slots"]


@dataclass(frozen=True, eq=False)
class OwnerPooling:
    """The bags of a step with owner-pooled tables.

    A node's own bags, of owner-pooled tables whose rows it has, do not pass its NIC: its GPU pools
    them. If the NIC computes the interaction, it needs all bags, and no bag is a node's own.

    Members
    -------
    pooled: whether each table pools at its owner: bool ``[tables]``.
    own: whether the bags of each table are a node's own: bool ``[nodes, tables]``.
    items: begin of each head, record and bag in the step's records: int64, ascending.
    parts: own bags of each sample that are pooled: int64 ``[nodes]``, 0 until the kernel ends.
    """

    pooled: np.ndarray
    own: np.ndarray
    items: np.ndarray
    parts: np.ndarray

    @classmethod
    def of(cls, plan: ShardPlan, samples: Samples, first: int,
           shares: list[int], interaction: bool = False,
           ) -> tuple["OwnerPooling", np.ndarray, np.ndarray]:
        """Return the bags of a step, its query records, and the bounds of each sample's records.

        first: number of the first sample. shares: first sample of each node's share, then the
        number of samples. interaction: whether the NIC computes the interaction.
        """
        own = np.array([plan.own_pooled(node) for node in range(plan.nodes)]) & (not interaction)
        records, items, heads, at = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [], 0
        for node, (begin, end) in enumerate(pairwise(shares)):
            if own[node].all():
                heads.append(np.full(end - begin, at))
                continue
            words, places = bag_queries(samples.slice(begin, end).of_tables(~own[node]),
                                        first + begin, plan.owner_pooled)
            kinds = record_fields(QueryRecord, words[places])["kind"]
            records.append(words)
            items.append(places + at)
            heads.append(places[kinds == RecordKind.SAMPLE] + at)
            at += len(words)
        pools = cls(plan.owner_pooled > 0, own, np.concatenate(items),
                    np.zeros(plan.nodes, np.int64))
        return pools, np.concatenate(records), np.append(np.concatenate(heads), at)

    def sends(self, node: int) -> bool:
        """Return whether ``node`` has queries for its NIC."""
        return not self.own[node].all()

    def items_within(self, first: int, end: int) -> np.ndarray:
        """Return the items of the records ``first`` to ``end - 1``, counted from ``first``."""
        begin, after = np.searchsorted(self.items, (first, end))
        return self.items[begin:after] - first

    def sent_lengths(self, node: int, share: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and the slots of each bag of ``share`` that ``node`` sends to its NIC:
        int64 ``[samples, tables]``."""
        sent = ~self.own[node]
        keys = share.bag_lengths[:, sent].astype(np.int64)
        return keys, np.where(self.pooled[sent], np.minimum(keys, 1), keys)

    def own_bags(self, node: int, share: Samples) -> BagList:
        """Return the own bags of the ``share`` of ``node``, except empty bags, sample by sample."""
        held = share.of_tables(self.own[node])
        lengths = held.bag_lengths.reshape(-1).astype(np.int64)
        full = lengths > 0
        tables = held.tables[held.bag_offsets[:-1][full]].astype(np.int64)
        none = np.zeros(len(tables), np.int64)
        return BagList(tables, lengths[full], held.rows, none, none.astype(bool))


def share_slots(samples: Samples, plan: ShardPlan) -> int:
    """Return the slots that hosts send of the share with the most slots: a slot per key, per empty
    bag and per bag of an owner-pooled table, without a node's own bags."""
    if not plan.pools_at_owner:
        return samples.share_slots(plan.nodes)
    return max(int(np.where(plan.owner_pooled > 0, 1, np.maximum(share.bag_lengths, 1))[
        :, ~plan.own_pooled(node)].sum()) for node, share in enumerate(samples.shares(plan.nodes)))
