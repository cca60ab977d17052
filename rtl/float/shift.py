"""Right shift with sticky bit, and count of leading zeros."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Mux, Value

__all__ = ["leading_zeros", "shift_right"]


def shift_right(value: Value, distance: Value, steps: Sequence[int]) -> tuple[Value, Value]:
    """Return ``value`` shifted right by some of the bits of ``distance``, and the sticky bit.

    ``steps`` are the powers of two to shift by, in that order, each if its bit of ``distance``
    is 1. The second value is 1 if a 1 was shifted out.
    """
    lost: Value = Const(0, 1)
    for step in steps:
        bit = distance[step.bit_length() - 1]
        lost = lost | (bit & value[:step].any())
        value = Mux(bit, value >> step, value)
    return value, lost


def leading_zeros(value: Value) -> Value:
    """Return the number of zeros above the highest 1 of ``value`` (5 bits; at most 31 bits wide).

    For 0 it returns the width.
    """
    # Padded to 32 bits by ones below, counted by halves.
    bits = Cat(Const(-1, 32 - len(value)), value)
    count = []
    for half in (16, 8, 4, 2, 1):
        upper, lower = bits[half:], bits[:half]
        none = ~upper.any()
        count.append(none)
        bits = Mux(none, lower, upper)
    return Value.cast(Cat(*reversed(count)))
