"""Rows that a training step updates, and those of them that no local cache holds any more."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from host.batching import MiniBatch
from host.placement.sets import NodeCaches
from host.placement.shard import ShardPlan, key_hash
from host.samples import first_lookups
from sim.evaluation.trace import Trace

__all__ = ["Updates", "updates", "updates_of_trace"]


@dataclass(frozen=True)
class Updates:
    """Rows to be updated, ``rows``, and those of them that no cache holds, ``misses``.

    Both ``[mini-batches, owners]``.
    """

    rows: np.ndarray
    misses: np.ndarray

    def to_json(self) -> dict[str, float]:
        """Return both of the mean mini-batch, all nodes."""
        return {name: float(counts.sum(axis=1).mean())
                for name, counts in (("rows", self.rows), ("misses", self.misses))}


@lru_cache(maxsize=8)
def updates_of_trace(trace: Trace, plan: ShardPlan, rows: int, ways: int,
                     policy: str = "lru") -> Updates:
    """Count those of the measured mini-batches of a trace; see :func:`updates`."""
    return updates(trace.batches, range(trace.warmup, len(trace.batches)), plan, rows, ways, policy)


def updates(batches: Sequence[MiniBatch], measured: Iterable[int], plan: ShardPlan, rows: int,
            ways: int, policy: str = "lru") -> Updates:
    """Count the rows that each measured mini-batch updates, and those its caches have evicted.

    The forward pass looks every key of a mini-batch up in the local cache of its owner; when the
    gradients come, a row may have been evicted by one that was looked up after it. Counted from the
    accesses, in the order of the samples and with the sets of the NIC, as ``sim hitrate`` does and
    with its bounds; ``update_misses`` of ``sim train`` counts the same in RTL.

    Parameters
    ----------
    batches: from caches that are empty. measured: the numbers of those that count.
    plan: of the tables over the nodes. rows, ways, policy: of each node's cache; 0 rows hold
        nothing.
    """
    caches = NodeCaches(rows // ways, ways, plan.nodes, policy) if rows else None
    counted, found = frozenset(measured), []
    for number, batch in enumerate(batches):
        samples = batch.samples
        first = first_lookups(samples)
        tables, of_table, keys = samples.tables[first], samples.rows[first], samples.keys[first]
        owner, hashes = plan.owner_of(tables, of_table), key_hash(tables, of_table)
        held = np.zeros(len(keys), bool)
        if caches is not None:
            caches.access(owner, hashes, keys)
        if number in counted:
            if caches is not None:
                held = caches.held(owner, hashes, keys)
            found.append([np.bincount(of, minlength=plan.nodes) for of in (owner, owner[~held])])
    return Updates(*(np.array(counts) for counts in zip(*found)))
