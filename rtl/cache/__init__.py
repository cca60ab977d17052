"""Caches of embedding vectors."""

from .cache import CACHE_COUNTERS, EmbeddingCache, tap_layout
from .fills import FILL_ID_BITS, FillBeat
from .local import LocalCache
from .remote import RemoteCache

__all__ = ["CACHE_COUNTERS", "FILL_ID_BITS", "EmbeddingCache", "FillBeat", "LocalCache",
           "RemoteCache", "tap_layout"]
