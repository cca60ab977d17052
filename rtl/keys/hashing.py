"""The key hash in hardware; see :mod:`rtl.keys.hash_columns` for its definition."""

from functools import reduce
from operator import xor

from amaranth.hdl import C, Cat, Value

from rtl.keys.hash_columns import COLUMNS, HASH_BITS

__all__ = ["hash_bits", "scale"]


def hash_bits(key: Value) -> Value:
    """Return the 32-bit H3 hash of a 48-bit key, combinationally: 2 levels of 6-input LUTs."""
    key = Value.cast(key)
    if len(key) != len(COLUMNS):
        raise ValueError(f"key must have {len(COLUMNS)} bits, not {len(key)!r}")
    bits = []
    for out in range(HASH_BITS):
        terms = [key[k] for k, column in enumerate(COLUMNS) if column >> out & 1]
        bits.append(reduce(xor, terms, C(0, 1)))
    return Value.cast(Cat(*bits))


def scale(fraction: Value, limit: Value) -> Value:
    """Scale an n-bit ``fraction`` to 0 to ``limit`` - 1: (fraction * limit) >> n."""
    return (fraction * limit) >> len(fraction)
