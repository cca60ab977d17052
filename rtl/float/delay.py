"""Delay of a value beside a pipeline without enable."""

from amaranth.hdl import Module, Signal, Value

__all__ = ["delayed"]


def delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """Return ``value`` delayed by ``cycles``, in shift registers of LUTs without reset."""
    for cycle in range(cycles):
        following = Signal(Value.cast(value).shape(), name=f"{name}{cycle}", reset_less=True)
        m.d.sync += following.eq(value)
        value = following
    return value
