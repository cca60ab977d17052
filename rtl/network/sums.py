"""Carry-save step: three numbers become two of the same sum, without a chain of carries."""

from amaranth.hdl import Value

__all__ = ["carry_saved"]


def carry_saved(first: Value, second: Value, third: Value) -> tuple[Value, Value]:
    """Return ``ones`` and ``twos``: the three numbers, of one width, are ones + 2 * twos.

    Only one addition is left, where several would put their chains one behind the other.
    """
    return (first ^ second ^ third,
            (first & second) | (first & third) | (second & third))
