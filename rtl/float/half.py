"""Conversion of 16-bit floating point to binary32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import leading_zeros

__all__ = ["HALF_CONVERTER_LATENCY", "HalfConverter"]

HALF_CONVERTER_LATENCY = 3
"""Cycles from the operand of :class:`HalfConverter` to its binary32."""

_QUIET_NAN = 0x7FC00000


class HalfConverter(wiring.Component):
    """Convert a binary16 or a bfloat16 to binary32.

    The conversion is exact, without rounding; each NaN becomes 0x7FC00000. The pipeline has no
    enable.

    Ports
    -----
    i: the operand.
    bfloat: the operand is a bfloat16, the upper half of a binary32; may change while the pipeline
        is empty.
    o: binary32.
    """

    LATENCY = {("operand", "its binary32"): HALF_CONVERTER_LATENCY}
    RATE = "1 operand per cycle"

    i: In(16)
    bfloat: In(1)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: classify.
        half, zeros, nan = Signal(16), Signal(range(11)), Signal()
        m.d.sync += [
            half.eq(self.i), zeros.eq(leading_zeros(self.i[:10])),
            nan.eq(Mux(self.bfloat, self.i[7:15].all() & self.i[:7].any(),
                       self.i[10:15].all() & self.i[:10].any())),
        ]

        # 2: a subnormal is shifted until its leading 1 is shifted out.
        field, upper, lost = half[10:15], Signal(16), Signal()
        fraction, exponent = Signal(10), Signal(8)
        m.d.sync += [upper.eq(half), lost.eq(nan)]
        with m.If(field.any()):
            m.d.sync += [fraction.eq(half[:10]),
                         exponent.eq(Mux(field.all(), 0xFF, field + (127 - 15)))]
        with m.Else():
            m.d.sync += [fraction.eq(half[:9] << zeros << 1),
                         exponent.eq(Mux(half[:10].any(), (127 - 15) - zeros, 0))]

        # 3: choose the format.
        wide = Cat(Const(0, 13), fraction, exponent, upper[15])
        m.d.sync += self.o.eq(Mux(lost, _QUIET_NAN, Mux(
            self.bfloat, Cat(Const(0, 16), upper), wide)))
        return m
