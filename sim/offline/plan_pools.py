"""Network bytes of each table in a plan, pooled at the requester and at the owner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from host.placement.lru import LruCaches
from host.placement.pooling import ForeignBags, PoolBytes, Wire, sent_one_by_one
from host.placement.shard import ShardPlan
from host.samples import Samples
from rtl.config import NicConfig
from rtl.formats import DescriptorKind

__all__ = ["PoolTally", "busiest"]


class PoolTally:
    """Foreign bags, keys and rows of each table, summed over mini-batches.

    Parameters
    ----------
    plan: owners and pool places.
    sets, ways: size of the remote caches, which keep rows between mini-batches; 0 sets for none.
    reducer: NICs that sum the gradients of rows, in training; None in inference.
    """

    def __init__(self, plan: ShardPlan, sets: int, ways: int, reducer: NicConfig | None = None):
        self._plan, self._reducer = plan, reducer
        self._looked_up = plan.owner_pooled == 0
        self._caches = LruCaches(sets, ways, plan.nodes)
        # Caches of the lookups if all tables pooled at the requester.
        self._every = None if self._looked_up.all() else LruCaches(sets, ways, plan.nodes)
        self._sums = np.zeros((6, len(plan.tables)), np.int64)

    def add(self, batch: Samples, counted: bool) -> None:
        """Add a mini-batch; without ``counted`` it only fills the caches."""
        found = ForeignBags(self._plan, [batch], reducer=self._reducer if counted else None)
        missed = found.missed_by(self._caches, self._looked_up)
        if self._every is not None:
            every = found.missed_by(self._every, np.ones_like(self._looked_up))
            missed = np.where(self._looked_up, missed, every)
        if counted:
            self._sums += found.bags, found.keys, found.rows, found.words, missed, (
                0 * missed if found.partials is None else found.partials)

    def tables(self, wire: Wire, obstacles: Sequence[str | None]) -> list[dict]:
        """Return a row per table, see :func:`sim.offline.plan.plan`.

        obstacles: :func:`host.placement.pooling.pool_obstacles`.
        """
        bags, keys, rows, words, missed, partials = self._sums
        costs = PoolBytes.of(wire, bags, words, missed, partials if self._reducer else None,
                             sent_one_by_one(self._plan, bags, words, keys))
        found = []
        for number, (table, obstacle) in enumerate(zip(self._plan.tables, obstacles)):
            saved = 1 - int(missed[number]) / int(keys[number]) if keys[number] else None
            hashed = table.kind == DescriptorKind.ROW
            found.append({
                "table": number, "pool": table.pool.name.lower(), "obstacle": obstacle,
                "foreign_bags": int(bags[number]), "foreign_keys": int(keys[number]),
                "distinct_foreign_rows": int(rows[number]), "missed_rows": int(missed[number]),
                "remote_cache_saves": saved,
                "cached_bags": saved and saved ** (int(keys[number]) / int(bags[number])),
                "requester_bytes": int(costs.requester_bytes[number]),
                "requester_headers": int(costs.requester_headers[number]),
                "owner_bytes": None if hashed else int(costs.owner_bytes[number]),
                "owner_headers": None if hashed else int(costs.owner_headers[number]),
                "requester_gradients": int(costs.requester_gradients[number]),
                "owner_gradients": None if hashed else int(costs.owner_gradients[number])})
        return found


def busiest(counts: dict[str, np.ndarray], nodes: int) -> dict | None:
    """Return the direction of a node with the most bytes per mini-batch; None for a single node.

    counts: traffic of :class:`sim.offline.plan_traffic.Traffic`, per mini-batch.
    """
    if nodes == 1:
        return None
    way, node = max(((way, node) for way in ("out", "in") for node in range(nodes)),
                    key=lambda place: counts[f"full_{place[0]}"][place[1]])
    return {"node": node, "direction": way, "full_bytes": float(counts[f"full_{way}"][node]),
            "expected_bytes": float(counts[f"expected_{way}"][node])}
