"""Final stage of a multiplication or division: shift, round to binary32, pack."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import product_shifted, shift_factor

__all__ = ["ROUNDER_LATENCY", "ProductRounder"]

ROUNDER_LATENCY = 2
"""Cycles from the operands of :class:`ProductRounder` to its result."""

_register = partial(Signal, reset_less=True)


class ProductRounder(wiring.Component):
    """Round ``significand * 2^(scale + 2 - 127 - 25)`` to binary32, to nearest even.

    A subnormal is shifted right in a DSP (:func:`~rtl.float.shift.shift_factor`). The pipeline has
    no enable.

    Ports
    -----
    scale: the exponent field of a significand with bit 25 set, less 2; one cycle before the other
        ports.
    significand: 26 bits; if ``scale`` is not negative, bit 25 or 24 is 1.
    sticky: a bit below ``significand`` is 1.
    sign, infinite, nan: properties of the result; ``infinite`` and ``nan`` override the other
        ports.
    o: the result, NaN as 0x7FC00000.
    """

    LATENCY = {("significand", "binary32"): ROUNDER_LATENCY}
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

        # 0: a subnormal is shifted right by 1 - exponent, which is ~scale. After 31 places no bit
        # has an effect.
        below, right = self.scale[-1], Signal(5)
        m.d.comb += right.eq(
            Mux(below, ~self.scale[:5] | ~self.scale[5:].all().replicate(5), 0))
        small, scale, factor, far0 = _register(), _register(8), _register(16), _register()
        # From 254 on, or 253 without a shift to the left, the result is infinite.
        over, edge = _register(), _register()
        m.d.sync += [
            small.eq(below), scale.eq(Mux(below, 0, self.scale)), factor.eq(shift_factor(right)),
            far0.eq(right[4]),
            over.eq(~below & (self.scale[8:].any() | self.scale[1:8].all())),
            edge.eq(~below & self.scale[2:8].all() & self.scale[0]),
        ]

        # 1: a leading 0 will be shifted out, if the exponent allows it.
        lead = ~self.significand[25] & ~small
        product, far, left, sticky = _register(26 + 15), _register(), _register(), _register()
        exponent, carry, hidden = _register(8), _register(2), _register()
        sign, infinite, nan = _register(), _register(), _register()
        m.d.sync += [
            product.eq(self.significand * factor), far.eq(far0), left.eq(lead),
            sticky.eq(self.sticky), exponent.eq(scale), hidden.eq(small),
            # The exponent is scale + 1, and 1 more without a shift to the left.
            carry.eq(Mux(small, 0, Mux(lead, 1, 2))),
            sign.eq(self.sign), nan.eq(self.nan),
            infinite.eq(self.infinite | over | (edge & ~lead)),
        ]

        # 2: round; a carry propagates into the exponent, up to infinity.
        whole, lost = product_shifted(product, far, 26)
        normal = Mux(left, product[15:40], whole[1:])
        guard, odd = normal[0], normal[1]
        packed, o = Signal(31), _register(32)
        m.d.comb += [
            packed.eq((
                Cat(Const(1, 1), normal[1:24], exponent)
                + Cat(guard & (odd | sticky | lost | (~left & whole[0])), Const(0, 23),
                      Mux(hidden, normal[24], carry[0]), carry[1]))[1:32]),
            self.o.eq(o),
        ]
        m.d.sync += o.eq(Cat(packed, sign))
        with m.If(nan):
            m.d.sync += o.eq(0x7FC00000)
        with m.Elif(infinite):
            m.d.sync += o.eq(Cat(Const(0xFF << 23, 31), sign))
        return m
