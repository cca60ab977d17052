"""Vectors of one mini-batch that a NIC delivers to its GPU, and lookups that the GPU does itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from host.model import Model
from host.samples import share_sizes
from host.systems.tally import Tally

__all__ = ["INDEX_BYTES", "Delivery", "delivery_of"]

INDEX_BYTES = 2
"""Bytes of an index into the distinct vectors of a share."""


@dataclass(frozen=True, eq=False)
class Delivery:
    """Counts of one mini-batch at each node: int64 ``[nodes]``, or an integer, the same at all.

    The busiest node is another one for each kind of work, see :meth:`most`.

    Members
    -------
    slots, bags: slots of a share in other tables than those, and their bags. A bag that another
        node pools is a slot; bags that the GPU pools itself do not count.
    vectors: distinct keys of these slots and bags that others pool, a lower bound for the vectors
        delivered with ``unique``; an evicted key that is used again is sent again.
    copied_slots, copied_bags: lookups in tables whose rows its GPU reads itself, and their bags:
        copied tables, and own tables.
    weights, copied_weights: slots, and lookups in these tables, that have a weight.
    own_rows, own_bags: rows and bags of a share in tables that pool at its node.
    segments: segments of bags that other nodes pool, without the first of each bag; a lower bound.
    """

    slots: np.ndarray | int
    bags: np.ndarray | int
    vectors: np.ndarray | int
    copied_slots: np.ndarray | int = 0
    copied_bags: np.ndarray | int = 0
    own_rows: np.ndarray | int = 0
    own_bags: np.ndarray | int = 0
    segments: np.ndarray | int = 0
    weights: np.ndarray | int = 0
    copied_weights: np.ndarray | int = 0

    def most(self, *names: str) -> int:
        """Return the sum of these members at the node where it is largest."""
        return int(np.max(sum(getattr(self, name) for name in names)))

    @property
    def index_bytes(self) -> int:
        """Bytes of the indices from slots to vectors."""
        return INDEX_BYTES * self.most("slots")

    @property
    def bag_bytes(self) -> int:
        """Bytes of the bag offsets; 0 if every bag has exactly one slot."""
        return 0 if np.all(self.slots == self.bags) else INDEX_BYTES * self.most("bags")

    def result_bytes(self, deliver: str, model: Model, samples: int) -> int:
        """Return the minimum bytes of a share's results, without headers.

        deliver: one of `host.systems.en_tuning.DELIVER`.
        """
        if deliver == "interaction":
            return 4 * model.interaction_width * samples
        if deliver == "pooled":
            return 4 * model.width * self.most("bags")
        return int(np.max(4 * model.width * self.vectors + INDEX_BYTES * self.slots))


def delivery_of(tally: Tally, small: Sequence[bool], pooled: Mapping[int, int] | None = None,
                once: bool = False, own: Mapping[int, int] | None = None,
                weighted: Sequence[int] = ()) -> Delivery:
    """Return the delivery of a mini-batch that is split over the nodes of ``tally``.

    small: for each table, whether every GPU has a copy.
    pooled: owner of each table whose bags pool at the owner, by its number.
    once: whether repeated and empty bags do not count, see `Counts`.
    own: owner of each table that pools at the requester and whose rows the owner's GPU reads for
        its own node, by the table's number.
    weighted: tables whose keys have weights.
    """
    counts = tally.counts
    samples = np.array(share_sizes(len(tally.samples), tally.nodes))
    sizes = np.broadcast_to(samples[:, None], counts.bags.shape)
    if once:
        counts = counts._replace(keys=counts.new_keys, bags=counts.new_bags)
        sizes = counts.bags
    owner, nodes = np.full(len(small), -1), np.arange(tally.nodes)[:, None]
    held = owner.copy()
    for nodes_of, given in ((owner, pooled), (held, own)):
        for table, node in (given or {}).items():
            nodes_of[table] = node
    copied = np.array(small) | (held == nodes)
    looked_up = ~copied & (owner < 0)
    mine = ~copied & (owner == nodes)
    other = ~copied & (owner >= 0) & ~mine
    foreign = (counts.bags * other).sum(axis=1)
    heavy = np.isin(np.arange(len(small)), weighted)
    words = counts.bags + np.ceil(counts.keys * (1 + heavy) / 2)
    return Delivery(
        (counts.keys * looked_up).sum(axis=1) + foreign,
        (sizes * (looked_up | other)).sum(axis=1),
        (counts.distinct * looked_up).sum(axis=1) + foreign,
        (counts.keys * copied).sum(axis=1), (sizes * copied).sum(axis=1),
        (counts.keys * mine).sum(axis=1), (counts.bags * mine).sum(axis=1),
        (np.maximum(0, words // 8 - counts.bags) * other).sum(axis=1).astype(np.int64),
        *((counts.keys * (of & heavy)).sum(axis=1) for of in (looked_up, copied)))
