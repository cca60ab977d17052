"""Recoded binary32: normalised, so a multiplier needs no normalisation."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import leading_zeros

__all__ = ["RECODED", "RECODER_LATENCY", "Recoder"]

EXPONENT_OFFSET = 64
"""Difference between binary32's exponent field and the exponent of :data:`RECODED`."""

RECODED = data.StructLayout({
    "fraction": 23, "exponent": signed(9), "sign": 1, "infinite": 1, "nan": 1})
"""A binary32 with its subnormals normalised, 35 bits.

fraction: the bits after the leading 1.
exponent: binary32's exponent field less 64; from -86 for the smallest subnormal to 190, and -256
for zero, so a product with zero always rounds to 0. With this offset the sum of two factors'
exponents has the form that the multiplier needs.
infinite, nan: exclude each other; with either, only the sign of the other fields is valid.
"""

RECODER_LATENCY = 2
"""Cycles from the operand of :class:`Recoder` to its recoded form."""


class Recoder(wiring.Component):
    """Recode a binary32 (after the recoded format of J. Hauser's HardFloat, with different fields).

    The conversion is exact, without rounding. The pipeline has no enable.

    Ports
    -----
    i: binary32.
    o: :data:`RECODED`.
    """

    LATENCY = {("binary32", "recoded operand"): RECODER_LATENCY}
    RATE = "1 operand per cycle"

    i: In(32)
    o: Out(RECODED)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: classify; a subnormal is shifted until its leading 1 is shifted out.
        fraction, field = self.i[:23], self.i[23:31]
        kept, exponent, shift = Signal(23), Signal(8), Signal(5)
        sign, infinite, nan = Signal(), Signal(), Signal()
        subnormal, zero = Signal(), Signal()
        m.d.sync += [
            kept.eq(fraction), exponent.eq(field), sign.eq(self.i[31]),
            shift.eq(leading_zeros(fraction)),
            subnormal.eq(~field.any()), zero.eq(~self.i[:31].any()),
            infinite.eq(field.all() & ~fraction.any()), nan.eq(field.all() & fraction.any()),
        ]

        # 2: shift. A fraction that begins k zeros below the point means 2^-(k + 1).
        m.d.sync += [
            self.o.fraction.eq(Mux(subnormal, Cat(Const(0, 1), kept) << shift, kept)),
            self.o.exponent.eq(Mux(zero, -256, (
                Mux(subnormal, -shift, exponent) - EXPONENT_OFFSET))),
            self.o.sign.eq(sign), self.o.infinite.eq(infinite), self.o.nan.eq(nan),
        ]
        return m
