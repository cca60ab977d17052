"""Common parts of the exact-sum blocks: the format of a lane's sum, and their records."""

from amaranth.hdl import ShapeLike
from amaranth.lib import data

from rtl.config import LANES

__all__ = ["CHUNKS", "CHUNK_BITS", "EXACT", "EXACT_BITS", "EXACT_SEGMENTS", "EXACT_TERMS",
           "EXACT_VALUE_BITS", "SEGMENT_BITS", "check_lanes", "check_units", "exact_sum_layout",
           "exact_term_layout", "segment_slice"]

EXACT_TERMS = 1 << 20
"""Terms that a sum can hold, for any values."""

EXACT_VALUE_BITS = 277 + (EXACT_TERMS - 1).bit_length() + 1
"""Width: a binary32 is an integer of 277 bits in units of 2^-149; the number of terms; the sign."""

EXACT = data.StructLayout({"value": EXACT_VALUE_BITS, "plus": 1, "minus": 1, "other": 1})
"""The exact sum of one lane, 301 bits; all zero is the sum of no terms.

value: sum of the finite terms in units of 2^-149, two's complement. Only the whole sum needs to
fit: a partial sum may wrap.
plus, minus: a term was +inf or -inf; a NaN sets both, like two opposite infinities.
other: a term was not -0.

A zero sum is -0 if every term is -0, and +0 otherwise, as in an IEEE-754 addition of the terms in
any order.
"""

EXACT_BITS = EXACT.size
"""Bits of one lane in a memory: 16 lanes are 4,816 bits, 67 columns of 72."""

SEGMENT_BITS = 54
"""Bits of a sum that are added in one cycle; 16 lanes of them fill 12 columns of 72 bits."""

EXACT_SEGMENTS = -(-EXACT_BITS // SEGMENT_BITS)
"""Segments of a sum; the last one is short and also holds the flags."""

CHUNK_BITS = 27
"""Unit of the search for the leading bit: two chunks hold a significand that begins anywhere in the
first one."""

CHUNKS = (EXACT_VALUE_BITS - 1) // CHUNK_BITS
"""Chunks below the sign; they cover all bits."""

assert CHUNKS * CHUNK_BITS == EXACT_VALUE_BITS - 1 and EXACT_BITS == 301
assert (EXACT_SEGMENTS - 1) * SEGMENT_BITS < EXACT_VALUE_BITS, "the flags share a segment"


def segment_slice(segment: int) -> slice:
    """Return the bits of an :data:`EXACT` that belong to ``segment``."""
    return slice(SEGMENT_BITS * segment, min(SEGMENT_BITS * (segment + 1), EXACT_BITS))


def check_lanes(lanes: object) -> None:
    """Raise ``ValueError`` unless ``lanes`` is an integer from 1 to 16."""
    if isinstance(lanes, bool) or not isinstance(lanes, int) or not 1 <= lanes <= LANES:
        raise ValueError(f"lanes must be an integer between 1 and {LANES}, not {lanes!r}")


def check_units(units: object, lanes: int) -> None:
    """Raise ``ValueError`` unless ``lanes`` is 1, 2, 4 or 8 times the integer ``units``."""
    if isinstance(units, bool) or not isinstance(units, int) or (
            units not in [lanes / turns for turns in (1, 2, 4, 8)]):
        raise ValueError(f"units must be lanes ({lanes}) divided by 1, 2, 4 or 8, not {units!r}")


def exact_sum_layout(meta_shape: ShapeLike, lanes: int = LANES) -> data.StructLayout:
    """Layout of the sums of one entry, or of ``lanes`` lanes of them, and of the meta of the
    request."""
    return data.StructLayout({"lanes": data.ArrayLayout(EXACT, lanes), "meta": meta_shape})


def exact_term_layout(meta_shape: ShapeLike, lanes: int = LANES) -> data.StructLayout:
    """Layout of one beat of binary32 of an entry.

    ``count``: the beats of this entry so far; with ``last``, the beats of all. A sum takes at most
    2^20 terms of the largest finite number, and 12 below them.
    """
    return data.StructLayout({
        "data": 32 * lanes, "meta": meta_shape, "count": range(2 * EXACT_TERMS), "last": 1})
