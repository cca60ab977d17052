"""What a NIC has to deliver to its GPU of one mini-batch, and what the GPU looks up itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.model import Model
from host.samples import Samples

__all__ = ["INDEX_BYTES", "Delivery", "delivery_of"]

INDEX_BYTES = 2
"""Of a slot's place among the different vectors of a share."""


@dataclass(frozen=True)
class Delivery:
    """Counts of one mini-batch, of the node that has most of each.

    Members
    -------
    slots, bags: lookups of a share in tables that its GPU has no copy of, and their bags.
    vectors: different keys of these slots, the least that are delivered where each comes once: a
        key that the NIC forgets meanwhile comes again.
    copied_slots, copied_bags: lookups in tables that its GPU has a copy of, and their bags.
    """

    slots: int
    bags: int
    vectors: int
    copied_slots: int = 0
    copied_bags: int = 0

    @property
    def index_bytes(self) -> int:
        """Bytes that say which vector each slot has."""
        return INDEX_BYTES * self.slots

    @property
    def bag_bytes(self) -> int:
        """Bytes that say where bags begin which are not all of one slot."""
        return 0 if self.slots == self.bags else INDEX_BYTES * self.bags

    def result_bytes(self, deliver: str, model: Model, samples: int) -> int:
        """Return the least bytes of a share's results, without headers, for one of
        `host.systems.en_tuning.DELIVER`."""
        if deliver == "interaction":
            return 4 * model.interaction_width * samples
        if deliver == "pooled":
            return 4 * model.dimension * self.bags
        return 4 * model.dimension * self.vectors + self.index_bytes


def delivery_of(samples: Samples, small: Sequence[bool], nodes: int) -> Delivery:
    """Return what NICs deliver of a mini-batch that is dealt over ``nodes`` nodes.

    ``small``: the tables of which each GPU has a copy.
    """
    copied, found = np.array(small), []
    for share in samples.shares(nodes):
        own = copied[share.tables]
        found.append((int(np.count_nonzero(~own)), len(share) * int(np.count_nonzero(~copied)),
                      len(np.unique(share.keys[~own])),
                      int(np.count_nonzero(own)), len(share) * int(np.count_nonzero(copied))))
    return Delivery(*map(max, zip(*found)))
