"""Event counters; each block contains the counters of its events."""

from collections.abc import Collection

from amaranth.hdl import Fragment, Module, Signal, Value
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.lib import data, wiring

__all__ = ["COUNTER_BITS", "WIDE_COUNTER_BITS", "CounterLayout", "check_counters", "count"]

COUNTER_BITS, WIDE_COUNTER_BITS = 32, 64


def CounterLayout(*names: str, wide: Collection[str] = ()) -> data.StructLayout:
    """Layout of a block's ``counters`` port: one value per name, in order.

    A value has 64 bits if its name is in ``wide``, otherwise 32 bits.
    """
    return data.StructLayout({
        name: WIDE_COUNTER_BITS if name in wide else COUNTER_BITS for name in names})


def count(m: Module, counters: data.View, **events: Value | int) -> None:
    """Add each event's value (one bit, or a small number) to its counter, in each cycle.

    Counters are cumulative, wrap at 2^32 (2^64 if wide), and only reset clears them. The upper half
    of a wide counter follows a cycle after the lower half. An unknown name raises ``ValueError``;
    :func:`check_counters` finds names without a driver.
    """
    known = list(counters.shape().members)
    for name, event in events.items():
        if name not in known:
            raise ValueError(f"counter must be one of {', '.join(known)}, not {name!r}")
        value = Value.cast(counters[name])
        low, high = value[:COUNTER_BITS], value[COUNTER_BITS:]
        following = low + event
        m.d.sync += low.eq(following[:COUNTER_BITS])
        if len(high):
            carry = Signal(name=f"{name}_carry")
            m.d.sync += [carry.eq(following[COUNTER_BITS:].any()), high.eq(high + carry)]


def check_counters(block: Fragment) -> None:
    """Raise ``ValueError`` if a component in ``block`` has a counter without a driver."""
    driven, parts = LHSMaskCollector(), [block]
    for part in parts:
        for statements in part.statements.values():
            driven.visit_stmt(statements)
        parts += [child for child, *_ in part.subfragments]
    for component in (origin for part in parts for origin in part.origins or ()
                      if isinstance(origin, wiring.Component)):
        for name in component.signature.members:
            port = getattr(component, name)
            if not (name.endswith("counters") and component.signature.members[name].flow
                    is wiring.Out and isinstance(port, data.View)):
                continue
            bits = driven.lhs.get(Value.cast(port), 0)
            for counter, field in port.shape():
                if (bits >> field.offset | -1 << field.width) != -1:
                    raise ValueError(f"counter {counter!r} of {type(component).__name__} is "
                                     "driven nowhere: pass its event to count()")
