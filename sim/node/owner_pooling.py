"""The bags of a step with owner-pooled tables: bags for the NICs, and the nodes' own bags."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from host.wire.bags import BagList, bag_queries
from host.wire.packets import bag_slots, record_fields
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
    weighted: whether the bags of each table have weights: bool ``[tables]``.
    """

    pooled: np.ndarray
    own: np.ndarray
    items: np.ndarray
    parts: np.ndarray
    weighted: np.ndarray

    @classmethod
    def of(cls, plan: ShardPlan, samples: Samples, first: int,
           shares: list[int], interaction: bool = False, sent: np.ndarray | None = None,
           ) -> tuple["OwnerPooling", np.ndarray, np.ndarray]:
        """Return the bags of a step, its query records, and the bounds of each sample's records.

        first: number of the first sample. shares: first sample of each node's share, then the
        number of samples. interaction: whether the NIC computes the interaction. sent: whether
        each bag is sent or pooled by its own GPU, bool ``[samples, tables]``; None for all bags.
        """
        own = plan.own_by_node & (not interaction)
        records, items, heads, at = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [], 0
        for node, (begin, end) in enumerate(pairwise(shares)):
            if own[node].all():
                heads.append(np.full(end - begin, at))
                continue
            new = None if sent is None else sent[begin:end, ~own[node]]
            words, places = bag_queries(samples.slice(begin, end).of_tables(~own[node]),
                                        first + begin, plan.owner_pooled, new, plan.weighted)
            kinds = record_fields(QueryRecord, words[places])["kind"]
            records.append(words)
            items.append(places + at)
            ends = np.append(places[kinds == RecordKind.SAMPLE], len(words))
            # A sample without records begins where the next sample with records does.
            headed = np.ones(end - begin, bool) if new is None else new.any(axis=1)
            heads.append(at + ends[np.cumsum(headed) - headed])
            at += len(words)
        pools = cls(plan.owner_pooled > 0, own, np.concatenate(items),
                    np.zeros(plan.nodes, np.int64), plan.weighted)
        return pools, np.concatenate(records), np.append(np.concatenate(heads), at)

    def sends(self, node: int) -> bool:
        """Return whether ``node`` has queries for its NIC."""
        return not self.own[node].all()

    def items_within(self, first: int, end: int) -> np.ndarray:
        """Return the items of the records ``first`` to ``end - 1``, counted from ``first``."""
        begin, after = np.searchsorted(self.items, (first, end))
        return self.items[begin:after] - first

    def sent_lengths(self, node: int, share: Samples,
                     sent: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and the slots of each bag of ``share`` in the tables that ``node`` sends
        to its NIC, 0 for bags that are not ``sent``: int64 ``[samples, tables]``."""
        tables = ~self.own[node]
        keys = share.bag_lengths[:, tables].astype(np.int64)
        keys = keys if sent is None else keys * sent[:, tables]
        return keys, np.where(self.pooled[tables], np.minimum(keys, 1), keys)

    def own_bags(self, node: int, share: Samples, sent: np.ndarray | None) -> BagList:
        """Return the own bags of the ``share`` of ``node`` that are ``sent``, except empty bags,
        sample by sample."""
        held = share.of_tables(self.own[node])
        lengths = held.bag_lengths.reshape(-1).astype(np.int64)
        full = lengths > 0
        if sent is not None:
            full &= sent[:, self.own[node]].reshape(-1)
        tables = held.tables[held.bag_offsets[:-1][full]].astype(np.int64)
        none = np.zeros(len(tables), np.int64)
        keys = np.repeat(full, lengths)
        weights = (None, None) if held.weights is None else (
            held.weights[keys], self.weighted[tables])
        return BagList(tables, lengths[full], held.rows[keys], none, none.astype(bool), *weights)


def share_slots(samples: Samples, plan: ShardPlan, sent: np.ndarray | None = None) -> int:
    """Return the slots that hosts send of the share with the most slots: a slot per key, per empty
    bag and per bag of an owner-pooled table, without a node's own bags.

    sent: whether each bag is sent, bool ``[samples, tables]``; None for all bags.
    """
    slots = bag_slots(np.where(plan.owner_pooled > 0, 1, samples.bag_lengths), sent)
    ends = np.cumsum(share_sizes(len(samples), plan.nodes))
    return max(int(each[:, ~plan.own_pooled(node)].sum())
               for node, each in enumerate(np.split(slots, ends[:-1])))
