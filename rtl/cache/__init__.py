"""Caches of embedding vectors."""

from rtl.cache.cache import CACHE_COUNTERS, EmbeddingCache, tap_layout
from rtl.cache.fills import FILL_ID_BITS, FillBeat
from rtl.cache.local import LocalCache
from rtl.cache.remote import RemoteCache

__all__ = ["CACHE_COUNTERS", "FILL_ID_BITS", "EmbeddingCache", "FillBeat", "LocalCache",
           "RemoteCache", "tap_layout"]
