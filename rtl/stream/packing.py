"""Packing and unpacking of vectors below 16 values, which share the beats of packets.

Inside the NIC each vector has its own beat, whose upper lanes are +0. In a packet, 2 vectors of 8
values or 4 of 4 share a beat, the first in the lowest lanes; the rest of the last beat is zero.
``packing`` is log2 of the vectors per beat; 0 leaves beats unchanged.
"""

from collections.abc import Iterator

from amaranth.hdl import C, Cat, Mux, Value
from amaranth.lib import data

from rtl.config import BEAT_BITS, LANES

__all__ = ["QUARTER", "Placing", "placed", "placing", "taken", "written"]

_GROUPS = 4
QUARTER = BEAT_BITS // _GROUPS
"""Bits of the smallest vector."""


Placing = data.StructLayout({"writes": _GROUPS, "high": 1, "later": 1})
"""Place of a vector in its beat.

The quarters that it ``writes``; it is the upper of two vectors; it is one of four, and not the
first.
"""


def placing(index: Value, packing: Value) -> data.View:
    """Return the :data:`Placing` of vector ``index``.

    Only the bits of ``index`` that count within the beat are used; ``packing`` is 0 to 2.
    """
    high = (packing == 1) & index[0]
    place = Mux(packing == 2, index[:2], 0)
    later = place != 0
    writes = Cat((C(k >= 2, 1) | ~high) & (~later | (place == k)) for k in range(_GROUPS))
    return data.View(Placing, Cat(writes, high, later))


def written(vector: Value, where: data.View) -> Iterator[Value]:
    """Yield for each quarter of a beat the data that ``vector``, 512 bits, writes there if it
    writes."""
    parts = [vector.word_select(k, QUARTER) for k in range(_GROUPS)]
    for k, part in enumerate(parts):
        yield Mux(where.later, parts[0], Mux(where.high, parts[k - 2], part) if k >= 2 else part)


def placed(vector: Value, index: Value, packing: Value) -> Iterator[tuple[Value, Value]]:
    """Yield for each quarter of a beat whether vector ``index`` writes it, and the data written.

    The first vector of a beat writes zeros for all others, which then replace them. :func:`placing`
    and :func:`written` compute the same in different cycles.
    """
    where = placing(index, packing)
    yield from zip(where.writes, written(vector, where))


def taken(beat: Value, index: Value, packing: Value) -> Value:
    """Return vector ``index`` of ``beat``, 512 bits whose upper lanes are +0.

    ``index`` is below the vectors per beat; ``packing`` is 1 or 2.
    """
    low, second, third, high = (beat.word_select(k, QUARTER) for k in range(_GROUPS))
    halves = packing == 1
    lowest = Mux(index[1], Mux(index[0], high, third),
                 Mux(index[0], Mux(halves, third, second), low))
    return Value.cast(Cat(lowest, Mux(halves, Mux(index[0], high, second), 0)))


assert BEAT_BITS == 32 * LANES and LANES == 4 * _GROUPS
