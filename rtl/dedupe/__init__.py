"""Deduplication of the lookups of a step at their owner."""

from rtl.dedupe.table import DEDUPE_COUNTERS, DedupeTable

__all__ = ["DEDUPE_COUNTERS", "DedupeTable"]
