"""Deduplication of the lookups of a step at their owner."""

from .table import DEDUPE_COUNTERS, DedupeTable

__all__ = ["DEDUPE_COUNTERS", "DedupeTable"]
