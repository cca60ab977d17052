"""Network traffic that the remote caches save, from the registers' counts."""

from collections.abc import Mapping

from rtl.formats import RECORD_BITS, TAG_BITS

__all__ = ["remote_cache_summary", "saved_bytes"]


def remote_cache_summary(counters: Mapping[str, int], unique: int) -> dict:
    """Return the counters of all remote caches with their hit rates.

    hit_rate: fraction of lookups of other nodes' rows that did not cross the network, including
        merged lookups.
    hit_rate_unique: 1 minus the lookups that crossed the network per distinct key of a requester's
        share of a mini-batch; negative if a key crosses more than once in a mini-batch.
    """
    accesses = counters.get("accesses")
    return dict(counters) | {
        "hit_rate": counters["hits"] / accesses if accesses else None,
        "hit_rate_unique": 1 - counters["misses"] / unique if accesses and unique else None,
    }


def saved_bytes(saved_lookups: int, dimension: int) -> int:
    """Return the payload bytes of lookups that did not cross the network: record, tag, vector."""
    return saved_lookups * ((RECORD_BITS + TAG_BITS) // 8 + 4 * dimension)
