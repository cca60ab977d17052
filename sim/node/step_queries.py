"""Queries of a mini-batch: the records that each node's host sends its NIC, and bags without
records, which the host's GPU pools."""

from dataclasses import dataclass

import numpy as np

from host.samples import Samples
from host.wire.bags import BagList
from host.wire.packets import record_fields, share_end
from rtl.formats import QueryRecord, RecordKind
from sim.node.owner_pooling import OwnerPooling
from sim.node.repeats import Repeats

__all__ = ["StepQueries"]


@dataclass(kw_only=True)
class StepQueries:
    """The queries of a mini-batch.

    Members
    -------
    samples: its samples.
    shares: first sample of each node's share, and the number of samples at the end.
    records: query records of all samples: uint64.
    bounds: begin and end of each sample's records.
    dense: dense vectors, float32 ``[samples, dimension]``, if the NIC computes the interaction.
    unique: whether the NICs send each distinct vector of a share once.
    pools: bags of owner-pooled tables; None without owner-pooled tables.
    repeats: repeated bags, which the NICs do not get; None if all bags are sent.
    weighted: whether the bags of each table have weights, bool ``[tables]``; None without weights.
    """

    samples: Samples
    shares: list[int]
    records: np.ndarray
    bounds: np.ndarray
    dense: np.ndarray | None = None
    unique: bool = False
    pools: OwnerPooling | None = None
    repeats: Repeats | None = None
    weighted: np.ndarray | None = None

    def queries(self, node: int) -> np.ndarray:
        """Return the query records of the share of ``node``, and the record of its end if the step
        is ``unique``: uint64."""
        first, end = self.bounds[self.shares[node:node + 2]]
        records = self.records[first:end]
        return np.concatenate((records, share_end())) if self.unique else records

    def items(self, node: int) -> np.ndarray | None:
        """Return the places in :meth:`queries` at which a packet may begin; None for all places."""
        if self.pools is None:
            return None
        first, end = self.bounds[self.shares[node:node + 2]]
        items = self.pools.items_within(first, end)
        return np.append(items, (end - first, end - first + 1)) if self.unique else items

    def sends(self, node: int) -> bool:
        """Return whether ``node`` has queries for its NIC."""
        return self.pools is None or self.pools.sends(node)

    def own_bags(self, node: int) -> BagList:
        """Return the bags of the share of ``node`` that its own GPU pools, except empty bags."""
        assert self.pools is not None
        return self.pools.own_bags(node, self.samples.slice(*self.shares[node:node + 2]),
                                   self._sent(node))

    def slot_kinds(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the kind of each slot in :meth:`queries`, and the begin of each sample's slots:
        int64 ``[samples + 1]``."""
        bounds = self.bounds[self.shares[node]:self.shares[node + 1] + 1]
        records, starts = self.records[bounds[0]:bounds[-1]], bounds - bounds[0]
        if self.pools is not None:
            items = self.pools.items_within(bounds[0], bounds[-1])
            records, starts = records[items], np.searchsorted(items, starts)
        kinds = record_fields(QueryRecord, records)["kind"]
        heads = np.cumsum(np.diff(starts) > 0)
        return kinds[kinds != RecordKind.SAMPLE], starts - np.concatenate(([0], heads))

    def bag_lengths(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and the slots of each bag in :meth:`queries`: int64 ``[samples, bags]``.

        With ``repeats``, both are 0 for a bag that is not sent.
        """
        share, sent = self.samples.slice(*self.shares[node:node + 2]), self._sent(node)
        if self.pools is not None:
            return self.pools.sent_lengths(node, share, sent)
        lengths = share.bag_lengths.astype(np.int64) * (True if sent is None else sent)
        return lengths, lengths

    def slot_weights(self, node: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the weight of each slot in :meth:`queries` that is not empty, float32 ``[slots]``,
        and whether the host weights the bags of each table in :meth:`bag_lengths`, bool; None
        without weights.

        A bag of an owner-pooled table is a slot of weight 1: its owner has used the weights.
        """
        if self.weighted is None:
            return None, None
        share, sent = self.samples.slice(*self.shares[node:node + 2]), self._sent(node)
        assert share.weights is not None
        pooled, tables = np.zeros((2, share.table_count), bool)
        if self.pools is not None:
            pooled, tables = self.pools.pooled, self.pools.own[node]
        lengths = share.bag_lengths.astype(np.int64)
        here = ~tables & (lengths > 0) & (True if sent is None else sent)
        slots = here * np.where(pooled, 1, lengths)
        weights = np.ones(int(slots.sum()), np.float32)
        weights[np.repeat(np.tile(~pooled, len(share)), slots.reshape(-1))] = share.weights[
            np.repeat((here & ~pooled).reshape(-1), lengths.reshape(-1))]
        return weights, (self.weighted & ~pooled)[~tables]

    def own_places(self, node: int) -> np.ndarray:
        """Return the places of :meth:`own_bags` among the answers of the share of ``node``, which
        are numbered sample by sample: int64."""
        assert self.pools is not None
        lengths = self.samples.bag_lengths[slice(*self.shares[node:node + 2])]
        sent = self._sent(node)
        return np.flatnonzero(self.pools.own[node] & (lengths > 0) & (
            True if sent is None else sent))

    def _sent(self, node: int) -> np.ndarray | None:
        """Return whether each bag of the share of ``node`` is new; None if all bags are sent."""
        return self.repeats and self.repeats.new[slice(*self.shares[node:node + 2])]

    def tables(self, node: int) -> np.ndarray:
        """Return the tables of the bags in :meth:`bag_lengths`: int64."""
        sent = self.sent_tables(node)
        return np.arange(self.samples.table_count) if sent is None else sent

    def sent_tables(self, node: int) -> np.ndarray | None:
        """Return the tables of the bags in :meth:`bag_lengths`; None for all tables."""
        if self.pools is None or self.dense is not None:
            return None
        return np.flatnonzero(~self.pools.own[node])
