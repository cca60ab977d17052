"""Packing of vectors below 16 values, which share the beats of packets, and unpacking.

Inside the NIC such a vector is a beat by itself, whose upper lanes are +0. In a packet, 2 vectors
of 8 values or 4 of 4 share a beat, the first in the lowest lanes; the rest of the last beat is
zero. ``packing`` is log2 of their number; 0 leaves beats unchanged.
"""

from collections.abc import Iterator

from amaranth.hdl import Cat, Mux, Value

from rtl.config import BEAT_BITS, LANES

__all__ = ["QUARTER", "placed", "taken"]

_GROUPS = 4
QUARTER = BEAT_BITS // _GROUPS
"""Bits of the smallest vector."""


def placed(vector: Value, index: Value, packing: Value) -> Iterator[tuple[Value, Value]]:
    """Yield for each quarter of a beat whether vector ``index`` writes it, and the data written.

    The first vector of a beat writes zeros for all others, which then replace them. ``vector`` has
    512 bits; only the bits of ``index`` that count within the beat are used; ``packing`` is 0 to 2.
    """
    parts = [vector.word_select(k, QUARTER) for k in range(_GROUPS)]
    high = (packing == 1) & index[0]
    place = Mux(packing == 2, index[:2], 0)
    later = place != 0
    for k, part in enumerate(parts):
        if k >= 2:
            yield ~later | (place == k), Mux(later, parts[0], Mux(high, parts[k - 2], part))
        else:
            yield ~high & (~later | (place == k)), Mux(later, parts[0], part)


def taken(beat: Value, index: Value, packing: Value) -> Value:
    """Return vector ``index`` of ``beat``, 512 bits whose upper lanes are +0.

    ``index`` is below the number of vectors of a beat; ``packing`` is 1 or 2.
    """
    low, second, third, high = (beat.word_select(k, QUARTER) for k in range(_GROUPS))
    halves = packing == 1
    lowest = Mux(index[1], Mux(index[0], high, third),
                 Mux(index[0], Mux(halves, third, second), low))
    return Value.cast(Cat(lowest, Mux(halves, Mux(index[0], high, second), 0)))


assert BEAT_BITS == 32 * LANES and LANES == 4 * _GROUPS
