"""Vectors below 16 values share the beats of packets: into a lane group of a beat and out again.

Inside the NIC such a vector is a beat of its own, whose upper lanes are +0. In a packet 2 vectors
of 8 values or 4 of 4 lie in a beat, the first in the lowest lanes, and the rest of the last beat is
zero. ``packing`` is log2 of their number; 0 leaves beats as they are.
"""

from collections.abc import Iterator

from amaranth.hdl import Cat, Mux, Value

from rtl.config import BEAT_BITS, LANES

__all__ = ["QUARTER", "placed", "taken"]

_GROUPS = 4
QUARTER = BEAT_BITS // _GROUPS
"""Bits of the smallest vector."""


def placed(vector: Value, index: Value, packing: Value) -> Iterator[tuple[Value, Value]]:
    """Yield for each quarter of a beat whether vector ``index`` of the beat writes it, and what.

    The first vector of a beat writes zeros for all others, which then replace them. ``vector`` is
    512 bits; of ``index`` the bits that count in the beat are looked at; ``packing`` is 0 to 2.
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
