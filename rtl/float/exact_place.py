"""Conversion of a binary32 to a term of an exact sum: the position of its significand."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.exact import EXACT_SEGMENTS, SEGMENT_BITS

__all__ = ["EXACT_PLACER_LATENCY", "PLACED", "ExactPlacer"]

PLACED_BITS = 24 + SEGMENT_BITS - 1

PLACED = data.StructLayout({
    "bits": PLACED_BITS, "segment": range(EXACT_SEGMENTS), "negative": 1,
    "plus": 1, "minus": 1, "other": 1})
"""A term of an exact sum.

bits: the significand at its position in ``segment`` and the next one; 0 for infinities and NaN.
negative: subtract ``bits``.
plus, minus, other: flags to set in :data:`~rtl.float.exact.EXACT`.
"""

EXACT_PLACER_LATENCY = 3
"""Cycles from the operand of :class:`ExactPlacer` to its position."""

_LARGEST = 253
"""Position of the largest significands, in bits."""

_BORDERS = range(SEGMENT_BITS, _LARGEST + 1, SEGMENT_BITS)


class ExactPlacer(wiring.Component):
    """Find the segment of a binary32 and its position in the segment, subnormals included; exact.

    The pipeline has no enable.

    Ports
    -----
    i: In(32), binary32.
    o: Out(:data:`PLACED`).
    """

    LATENCY = {("term", "its place"): EXACT_PLACER_LATENCY}
    RATE = "1 term per cycle"

    i: In(32)
    o: Out(PLACED)

    def elaborate(self, platform) -> Module:
        m = Module()
        fraction, field, sign = self.i[:23], self.i[23:31], self.i[31]

        # 1: the position is the exponent field less 1, or 0 for a field of 0, which has no hidden
        # bit. Infinities and NaN add 0.
        special, nan = field.all(), fraction.any()
        significand1, place1, beyond1 = (
            Signal(width, reset_less=True, name=name) for name, width in (
                ("significand1", 24), ("place1", 8), ("beyond1", len(_BORDERS))))
        state1, state2, state3 = (
            Signal(PLACED, reset_less=True, name=f"state{n}") for n in (1, 2, 3))
        m.d.sync += [
            significand1.eq(Mux(special, 0, Cat(fraction, field.any()))),
            place1.eq(field - field.any()),
            beyond1.eq(Cat(field > border for border in _BORDERS)),
            state1.negative.eq(sign & ~special),
            state1.plus.eq(special & (nan | ~sign)), state1.minus.eq(special & (nan | sign)),
            state1.other.eq(~sign | self.i[:31].any()),
        ]

        # 2: distance from the begin of the segment.
        segment, begin = Signal(PLACED["segment"].shape), Signal(8)
        for number, border in enumerate(_BORDERS):
            with m.If(beyond1[number]):
                m.d.comb += [segment.eq(number + 1), begin.eq(border)]
        significand2, distance2 = (
            Signal(24, reset_less=True), Signal(range(SEGMENT_BITS), reset_less=True))
        m.d.sync += [
            state2.eq(state1), state2.segment.eq(segment),
            significand2.eq(significand1), distance2.eq(place1 - begin),
        ]

        # 3: shift.
        m.d.sync += [state3.eq(state2), state3.bits.eq(significand2 << distance2)]
        m.d.comb += self.o.eq(state3)
        return m
