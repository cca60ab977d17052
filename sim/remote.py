"""What the requesters' caches keep off the network, from the registers' counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from host.samples import Samples
from host.shard import ShardPlan, foreign_keys
from rtl.formats import RECORD_BITS, TAG_BITS

if TYPE_CHECKING:
    from sim.results import Step

__all__ = ["RemoteKeys", "remote_cache_summary", "saved_bytes"]


class RemoteKeys:
    """Counts the keys that the nodes of a cluster need from one another.

    Parameters: the plan, and ``count``, :func:`host.shard.foreign_keys` or what does the same.

    Members: ``unique``, the different keys of each share of a mini-batch that other nodes own.
    """

    def __init__(self, plan: ShardPlan,
                 count: Callable[[ShardPlan, Samples, Sequence[int]], int] = foreign_keys):
        self._plan, self._count = plan, count
        self.unique = 0

    def add(self, step: Step) -> None:
        """Count the keys of a mini-batch."""
        if self._plan.nodes > 1:
            self.unique += self._count(self._plan, step.samples, step.shares)


def remote_cache_summary(counters: Mapping[str, int], unique: int) -> dict:
    """Return the counters of all remote caches with their hit rates.

    ``hit_rate``: of lookups of other nodes' rows, the part that did not travel, merged ones among
    them. ``hit_rate_unique``: one less the lookups that travelled for each different key of a
    requester's share of a mini-batch; below 0 where keys travel more than once in a mini-batch.
    """
    accesses = counters.get("accesses")
    return dict(counters) | {
        "hit_rate": counters["hits"] / accesses if accesses else None,
        "hit_rate_unique": 1 - counters["misses"] / unique if accesses and unique else None,
    }


def saved_bytes(saved_lookups: int, dimension: int) -> int:
    """Return the payload bytes of lookups that did not travel: record, tag and vector of each."""
    return saved_lookups * ((RECORD_BITS + TAG_BITS) // 8 + 4 * dimension)
