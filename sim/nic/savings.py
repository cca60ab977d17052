"""What the requesters' caches keep off the network, from the registers' counts."""

from collections.abc import Mapping

from rtl.formats import RECORD_BITS, TAG_BITS

__all__ = ["remote_cache_summary", "saved_bytes"]


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
