"""Rows that a training step updates, and those of them that no local cache holds any more."""

from collections.abc import Iterable, Sequence

import numpy as np

from host.batching import MiniBatch
from host.placement.lru import NodeCaches
from host.placement.shard import ShardPlan, key_hash
from host.samples import first_lookups

__all__ = ["updates"]


def updates(batches: Sequence[MiniBatch], measured: Iterable[int], plan: ShardPlan, rows: int,
            ways: int) -> dict[str, float]:
    """Return the rows that a mini-batch updates, and how many of them its caches have evicted.

    The forward pass looks every key of a mini-batch up in the local cache of its owner; when the
    gradients come, a row may have been evicted by one that was looked up after it. Counted from the
    accesses, in the order of the samples and with the sets of the NIC, as ``sim hitrate`` does and
    with its bounds; ``update_misses`` of ``sim train`` counts the same in RTL.

    Parameters
    ----------
    batches: from caches that are empty. measured: the numbers of those that count.
    plan: of the tables over the nodes. rows, ways: of each node's cache.

    Returns
    -------
    ``rows`` and ``misses``, of the mean measured mini-batch, all nodes.
    """
    caches, counted = NodeCaches(rows // ways, ways, plan.nodes), frozenset(measured)
    updated = missed = 0
    for number, batch in enumerate(batches):
        samples = batch.samples
        first = first_lookups(samples)
        tables, of_table, keys = samples.tables[first], samples.rows[first], samples.keys[first]
        looked_up = plan.owner_of(tables, of_table), key_hash(tables, of_table), keys
        caches.access(*looked_up)
        if number in counted:
            updated += len(keys)
            missed += int(np.count_nonzero(~caches.held(*looked_up)))
    return {"rows": updated / len(counted), "misses": missed / len(counted)}
