"""One-hot values of the ways of a set: selection and number."""

from collections.abc import Iterable

from amaranth.hdl import C, Mux, Value
from amaranth.utils import ceil_log2

__all__ = ["any_of", "number_of"]


def any_of(values: Iterable[Value]) -> Value:
    """Return the OR of the values, as a balanced tree; 0 for an empty list."""
    values = list(values)
    while len(values) > 1:
        values = [a | b for a, b in zip(values[::2], values[1::2])] + values[len(values) & ~1:]
    return values[0] if values else C(0)


def number_of(one_hot: Value) -> Value:
    """Return the number of the bit that is 1; 0 if no bit is 1."""
    bits = ceil_log2(len(one_hot))
    return any_of(Mux(one_hot[k], C(k, bits), 0) for k in range(len(one_hot)))
