"""Event counters, which are part of the block whose events they count."""

from amaranth.hdl import Module, Value
from amaranth.lib import data

__all__ = ["COUNTER_BITS", "CounterLayout", "count"]

COUNTER_BITS = 32


def CounterLayout(*names: str) -> data.StructLayout:
    """Layout of a block's ``counters`` port: one 32-bit value per name, in order."""
    return data.StructLayout({name: COUNTER_BITS for name in names})


def count(m: Module, counters: data.View, **events: Value | int) -> None:
    """Add each event's value (one bit, or a small number) to its counter, in each cycle.

    Counters are cumulative, wrap at 2^32, and only reset clears them. Every name must be driven
    once; an unknown name raises ``ValueError``.
    """
    known = list(counters.shape().members)
    for name, event in events.items():
        if name not in known:
            raise ValueError(f"counter must be one of {', '.join(known)}, not {name!r}")
        m.d.sync += counters[name].eq((counters[name] + event)[:COUNTER_BITS])
