"""Slots of a mini-batch in a plan, and the bags of its owner-pooled tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from host.wire.bags import NARROW_ROWS
from rtl.formats import RECORDS_PER_BEAT, DescriptorKind, words_of

__all__ = ["Bags", "BatchSlots"]


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags that owners pool for NICs, in the order of their samples: int64 ``[n]`` each.

    Members: ``requester``, ``owner``, nodes; ``keys``, and ``weights`` of them; ``words``, with the
    head; ``beats`` of its vector; ``sent``, the cycle in which a bag leaves its requester.
    """

    requester: np.ndarray
    owner: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    words: np.ndarray
    beats: np.ndarray
    sent: np.ndarray

    @property
    def segments(self) -> np.ndarray:
        """Mean segments of each bag, which may begin at any word of a beat: float64."""
        return (self.words + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT

    def __getitem__(self, chosen: np.ndarray) -> Bags:
        return Bags(*(getattr(self, name)[chosen] for name in (
            "requester", "owner", "keys", "weights", "words", "beats", "sent")))


@dataclass(frozen=True, eq=False)
class BatchSlots:
    """The slots of a mini-batch that hosts send to their NICs.

    Members
    -------
    shares: samples of each node: int64 ``[nodes]``.
    slots, words: slots of each sample, and their words: int64 ``[samples]``.
    node_slots: slots of each node: int64 ``[nodes]``.
    parts: tables whose bags each node sends: int64 ``[nodes]``.
    sent: cycle in which each key leaves its requester, if its table pools there: int64 ``[keys]``.
    bags: bags of owner-pooled tables that pass a NIC.
    own_bags, own_keys, own_weights: bags, keys and weights that each node's GPU pools without the
        NIC: int64 ``[nodes]``.
    """

    shares: np.ndarray
    slots: np.ndarray
    words: np.ndarray
    node_slots: np.ndarray
    parts: np.ndarray
    sent: np.ndarray
    bags: Bags
    own_bags: np.ndarray
    own_keys: np.ndarray
    own_weights: np.ndarray

    @classmethod
    def of(cls, batch: Samples, plan: ShardPlan, interaction: bool) -> BatchSlots:
        """Return the slots of ``batch``; with ``interaction`` on the NIC, nodes send all bags."""
        nodes, rows = plan.nodes, plan.owner_pooled
        shares = np.array(share_sizes(len(batch), nodes), np.int64)
        holder = np.repeat(np.arange(nodes), shares)
        mine = plan.own_by_node
        own = (mine & (not interaction))[holder]
        lengths = batch.bag_lengths.astype(np.int64)
        bag = (rows > 0) & (lengths > 0) & ~own
        slots = np.where(own, 0, np.where(rows > 0, 1, np.maximum(lengths, 1)))
        wide = (rows > NARROW_ROWS).astype(np.int64)
        words = np.where(bag, 1 + words_of(lengths, wide, plan.weighted), slots)
        cycles = np.where(bag, -(-words // RECORDS_PER_BEAT), slots).reshape(-1)
        # Cycles before each bag on its own node.
        before = np.cumsum(cycles) - cycles
        first = np.concatenate(([0], np.cumsum(np.bincount(
            np.repeat(holder, lengths.shape[1]), cycles, nodes).astype(np.int64))[:-1]))
        before -= np.repeat(first[holder], lengths.shape[1])
        keys = lengths.reshape(-1)
        place = np.arange(keys.sum()) - np.repeat(np.cumsum(keys) - keys, keys)
        sample, table = np.nonzero(bag)
        replicated = np.array([each.kind == DescriptorKind.REPLICATED for each in plan.tables])
        owner = np.array([each.owner for each in plan.tables])
        requester = holder[sample]
        used = lengths * plan.weighted
        return cls(
            shares, slots.sum(axis=1), words.sum(axis=1),
            np.bincount(holder, slots.sum(axis=1), nodes).astype(np.int64),
            (~mine | interaction).sum(axis=1), np.repeat(before, keys) + place,
            Bags(requester, np.where(replicated[table], requester, owner[table]),
                 lengths[sample, table], used[sample, table], words[sample, table],
                 plan.beats[table], before.reshape(lengths.shape)[sample, table]),
            *(np.bincount(holder, (own * each).sum(axis=1), nodes).astype(np.int64)
              for each in (lengths > 0, lengths, used)))
