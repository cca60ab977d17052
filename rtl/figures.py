"""Latency and rate of blocks: class attributes that documentation, bench and model read.

``LATENCY``: cycles by path, from input to output, without other traffic; a text such as ``"n +
39"`` if they depend on the input. ``RATE``: items per cycle, a text. A block without these
attributes has no delay of its own.
"""

from collections.abc import Mapping

__all__ = ["Latency", "latency_of", "rate_of"]

Latency = Mapping[tuple[str, str], int | str]
"""Cycles by path: (from, to)."""


def latency_of(block: type) -> Latency:
    """Return the latencies of ``block``; empty if it declares no latency."""
    return getattr(block, "LATENCY", {})


def rate_of(block: type) -> str:
    """Return the rate of ``block``; "" if it declares no rate."""
    return getattr(block, "RATE", "")
