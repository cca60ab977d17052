"""Latency and rate of blocks: class attributes, which documentation, bench and model read.

``LATENCY``: cycles by path, from what goes in to what comes out, where nothing else is under way.
A text where they depend on what goes in: ``"n + 39"``. ``RATE``: what passes in a cycle, a text.

A block that has neither has no times of its own.
"""

from collections.abc import Mapping

__all__ = ["Latency", "latency_of", "rate_of"]

Latency = Mapping[tuple[str, str], int | str]
"""Cycles by path: (from, to)."""


def latency_of(block: type) -> Latency:
    """Return the latencies of ``block``; none if it says nothing of them."""
    return getattr(block, "LATENCY", {})


def rate_of(block: type) -> str:
    """Return the rate of ``block``; "" if it says nothing of it."""
    return getattr(block, "RATE", "")
