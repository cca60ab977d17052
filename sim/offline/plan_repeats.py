"""First lookups of each key in a share, for NICs that deliver unique vectors."""

from __future__ import annotations

import numpy as np

from host.placement.sets import NodeCaches
from host.placement.shard import key_hash
from host.samples import Samples
from rtl.config import NicConfig

__all__ = ["first_uses"]


def first_uses(batch: Samples, nodes: int, config: NicConfig,
               asked: np.ndarray | None = None) -> np.ndarray:
    """Return the indices of the keys that the NICs look up in a mini-batch, ascending.

    asked: ascending indices of the keys of tables that pool at the requester; by default all keys.

    A table of ``config.unique_keys`` finds duplicates within the share of each of ``nodes``; an
    evicted key is looked up again (:class:`rtl.delivery.unique.UniqueFinder`).
    """
    if not config.unique_keys:
        raise ValueError("unique_keys must be above 0 to deliver unique vectors, not 0")
    if asked is None:
        asked = np.arange(len(batch.rows))
    # Each share begins with an empty table.
    tables = NodeCaches(config.unique_keys // config.unique_ways, config.unique_ways, nodes)
    return asked[~tables.access(
        batch.requesters(nodes)[asked], key_hash(batch.tables[asked], batch.rows[asked]),
        batch.keys[asked])]
