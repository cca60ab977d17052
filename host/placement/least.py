"""Fewest bytes on the network, with which the bytes of a run are compared.

A foreign bag that pools at its owner needs a head of 8 bytes, 4 bytes for each key (8 in tables of
more than 2^32 rows) and each weight, and a vector with its tag. A row that misses the remote cache
needs a record of 8 bytes, and a vector with its tag. A table needs the smaller of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.distinct import distinct
from host.placement.pooling import ForeignBags, Wire
from host.wire.bags import NARROW_ROWS
from rtl.formats import RECORD_BITS, TAG_BITS, DescriptorKind, PoolPlace

__all__ = ["LeastBytes"]

_WORD, _TAG, _KEY = RECORD_BITS // 8, TAG_BITS // 8, 4


@dataclass(frozen=True, eq=False)
class LeastBytes:
    """Fewest bytes of mini-batches under a plan.

    Members
    -------
    tables: payload of each table: int64 ``[tables]``.
    payload: payload that leaves, and that reaches, each node: int64 ``[2, nodes]``.
    headers: headers and unused tags of the full packets with this payload, without the rest of the
        last packet: int64 ``[2, nodes]``.
    """

    tables: np.ndarray
    payload: np.ndarray
    headers: np.ndarray

    @classmethod
    def of(cls, foreign: ForeignBags, wire: Wire, pools: Sequence[PoolPlace], sets: int,
           ways: int) -> "LeastBytes":
        """Return the fewest bytes of ``foreign``.

        wire: bytes of a vector, and sizes of packets. pools: place of each table in the run, which
        decides about the keys in the remote caches. sets, ways: size of a node's remote cache, see
        :meth:`host.placement.pooling.ForeignBags.missed_rows`.
        """
        plan, nodes = foreign.plan, foreign.plan.nodes
        owner, whole = (np.array(each) for each in zip(*(
            (table.owner, table.kind == DescriptorKind.TABLE) for table in plan.tables)))
        key = np.array([_KEY * (1 + (table.rows > NARROW_ROWS) + table.weighted)
                        for table in plan.tables])
        # Requests and vectors of each pair of nodes, at both pool places.
        pairs = np.zeros((2, nodes, nodes, len(owner)), np.int64)
        bags = np.zeros_like(pairs[0])
        pairs[1, :, owner, range(len(owner))] = (
            _WORD * foreign.node_bags + key * foreign.node_keys).T
        bags[:, owner, range(len(owner))] = foreign.node_bags
        missed = _missed(foreign, np.array(pools) == PoolPlace.OWNER, sets, ways)
        pairs[0], vectors = _WORD * missed, np.array([missed, bags])
        moved = np.array([(wire.vector_bytes + _TAG) * missed, (wire.bag_bytes + _TAG) * bags])
        totals = (pairs + moved).sum(axis=(1, 2))
        at_owner = whole & (totals[1] < totals[0])
        asked, answered, moved = (np.where(at_owner, each[1], each[0])
                                  for each in (pairs, vectors, moved))
        # A request leaves its requester, and a vector its owner.
        asked = np.array([asked.sum(axis=(1, 2)), asked.sum(axis=(0, 2))])
        answered, moved = (np.array([each.sum(axis=0), each.sum(axis=1)])
                           for each in (answered, moved))
        # A packet has vectors of one size.
        fit = np.where(at_owner, wire.bag_vectors, wire.vectors)
        headers = wire.word_headers(asked // _WORD)
        for most in distinct(fit):
            headers = headers + wire.vector_headers(answered[:, :, fit == most].sum(axis=2), most)
        return cls(np.where(at_owner, totals[1], totals[0]), asked + moved.sum(axis=2), headers)

    def excess(self, moved: np.ndarray) -> float:
        """Return the bytes ``moved`` over the network by all nodes, without the headers of full
        packets, over the payload.

        moved: bytes that left, and that reached, each node: int64 ``[2, nodes]``.
        """
        return float((moved - self.headers)[0].sum() / self.payload[0].sum())

    def busiest(self, moved: np.ndarray) -> tuple[int, int, float]:
        """Return way (0 for out, 1 for in) and node of the direction with the most bytes, and the
        :meth:`excess` of this direction."""
        way, node = np.unravel_index(int(moved.argmax()), moved.shape)
        at = int(way), int(node)
        return *at, float((moved[at] - self.headers[at]) / self.payload[at])


def _missed(foreign: ForeignBags, owner: np.ndarray, sets: int, ways: int) -> np.ndarray:
    """Return the rows that remote caches miss: int64 ``[requester, owner, tables]``. Of tables that
    pool at their ``owner``: the rows if all tables pooled at the requester."""
    missed = foreign.missed_pairs(~owner, sets, ways)
    if not owner.any():
        return missed
    return np.where(owner, foreign.missed_pairs(np.ones_like(owner), sets, ways), missed)
