"""Final stage of a multiplication or division: shift, round to binary32, pack."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import shift_right

__all__ = ["ROUNDER_LATENCY", "ProductRounder"]

ROUNDER_LATENCY = 2
"""Cycles from the operands of :class:`ProductRounder` to its result."""


class ProductRounder(wiring.Component):
    """Round ``significand * 2^(scale + 2 - 127 - 25)`` to binary32, to nearest even.

    Latency and rate: see ``LATENCY`` and ``RATE``; no enable.

    Ports: ``significand``: 26 bits; if ``scale`` is not negative, bit 25 or 24 is 1. ``sticky``:
    a bit below ``significand`` is 1. ``scale``: the exponent field of a significand with bit
    25 set, less 2. ``sign``, ``infinite``, ``nan``: of the result, overriding the other ports;
    ``o``: the result, NaN as 0x7FC00000.
    """

    LATENCY = {("significand and scale", "binary32"): ROUNDER_LATENCY}
    RATE = "1 result per cycle"

    significand: In(26)
    sticky: In(1)
    scale: In(signed(11))
    sign: In(1)
    infinite: In(1)
    nan: In(1)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: a leading 0 is shifted out, if the exponent allows it; a subnormal is shifted right
        # by 1 - exponent, which is ~scale. After 31 places no bit counts.
        small, left, right = self.scale[-1], Signal(), Signal(5)
        m.d.comb += [
            left.eq(~self.significand[25] & ~small),
            right.eq(Mux(small, ~self.scale[:5] | ~self.scale[5:].all().replicate(5), 0)),
        ]
        lost0 = self.sticky | (~left & self.significand[0])
        wide = Mux(left, self.significand[:25], self.significand[1:])
        begun, lost = shift_right(wide, right, (8, 16))
        value, sticky, rest = Signal(25), Signal(), Signal(3)
        exponent, carry, hidden = Signal(8), Signal(2), Signal()
        sign, infinite, nan = Signal(), Signal(), Signal()
        m.d.sync += [
            value.eq(begun), sticky.eq(lost0 | lost), rest.eq(right),
            exponent.eq(self.scale), hidden.eq(small),
            # The exponent is scale + 1, and 1 more without a shift to the left.
            carry.eq(Mux(small, 0, Mux(left, 1, 2))),
            sign.eq(self.sign), nan.eq(self.nan),
            # From 254 on, or 253 without a shift to the left.
            infinite.eq(self.infinite | (~small & (self.scale[8:].any() | (
                self.scale[2:8].all() & (self.scale[1] | (self.scale[0] & ~left)))))),
        ]
        with m.If(small):
            m.d.sync += exponent.eq(0)

        # 2: finish the shift, in the order that takes the fewest LUTs, and round; a carry
        # propagates into the exponent, up to infinity.
        normal, lost = shift_right(value, rest, (1, 2, 4))
        guard, odd = normal[0], normal[1]
        packed = Signal(31)
        m.d.comb += packed.eq((
            Cat(Const(1, 1), normal[1:24], exponent)
            + Cat(guard & (odd | sticky | lost), Const(0, 23),
                  Mux(hidden, normal[24], carry[0]), carry[1]))[1:32])
        m.d.sync += self.o.eq(Cat(packed, sign))
        with m.If(nan):
            m.d.sync += self.o.eq(0x7FC00000)
        with m.Elif(infinite):
            m.d.sync += self.o.eq(Cat(Const(0xFF << 23, 31), sign))
        return m
