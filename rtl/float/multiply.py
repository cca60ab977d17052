"""Float32 multiplier: IEEE-754 binary32, round to nearest even."""

from functools import partial

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.recode import RECODED, RECODER_LATENCY, Recoder
from rtl.float.round import ROUNDER_LATENCY, ProductRounder
from rtl.shared import Shared

__all__ = ["FLOAT_MULTIPLIER_LATENCY", "PLAIN_MULTIPLIER_LATENCY", "FloatMultiplier",
           "PlainMultiplier"]

FLOAT_MULTIPLIER_LATENCY = 2 + ROUNDER_LATENCY
"""Cycles from the recoded operands of :class:`FloatMultiplier` to their product."""

PLAIN_MULTIPLIER_LATENCY = RECODER_LATENCY + FLOAT_MULTIPLIER_LATENCY
"""Cycles from the operands of :class:`PlainMultiplier` to their product."""

_DSP_BITS = 17
"""Bits of an unsigned factor that fit a DSP's shorter port; its cascade shifts by as much."""

_register = partial(Signal, reset_less=True)

_Flags = data.StructLayout({"sign": 1, "infinite": 1, "nan": 1})


class FloatMultiplier(wiring.Component):
    """Compute ``o = a * b`` of recoded operands, rounded to binary32; subnormals included.

    A recoded operand is normalised, so the product is normalised except for one place. The product
    of the significands consists of two partial products, of 24 x 17 and of 24 x 7 bits, one DSP
    each. The pipeline has no enable.

    Ports
    -----
    a, b: :data:`RECODED`.
    o: binary32, NaN as 0x7FC00000.
    """

    LATENCY = {("operands", "product"): FLOAT_MULTIPLIER_LATENCY}
    RATE = "1 product per cycle"

    a: In(RECODED)
    b: In(RECODED)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b = self.a, self.b

        # 1: partial products.
        left, right = Cat(a.fraction, 1), Cat(b.fraction, 1)
        low, high = _register(24 + _DSP_BITS), _register(48 - _DSP_BITS)
        scale, flags1 = _register(signed(10)), _register(_Flags)
        m.d.sync += [
            low.eq(left * right[:_DSP_BITS]), high.eq(left * right[_DSP_BITS:]),
            scale.eq(a.exponent + b.exponent),
            flags1.sign.eq(a.sign ^ b.sign), flags1.infinite.eq(a.infinite | b.infinite),
            # Zero is the only exponent below -128.
            flags1.nan.eq(a.nan | b.nan | (a.infinite & (b.exponent[7:9] == 0b10))
                          | (b.infinite & (a.exponent[7:9] == 0b10))),
        ]

        # 2: the whole product.
        product, flags2 = _register(48), _register(_Flags)
        m.d.sync += [
            product.eq(Cat(low[:_DSP_BITS], high + (low >> _DSP_BITS))), flags2.eq(flags1),
        ]

        m.submodules.rounder = rounder = ProductRounder()
        m.d.comb += [
            rounder.significand.eq(product[22:]), rounder.sticky.eq(product[:22].any()),
            rounder.scale.eq(scale), rounder.sign.eq(flags2.sign),
            rounder.infinite.eq(flags2.infinite), rounder.nan.eq(flags2.nan),
            self.o.eq(rounder.o),
        ]
        return m


class PlainMultiplier(wiring.Component):
    """Compute ``o = a * b`` in binary32: two recoders followed by a :class:`FloatMultiplier`.

    The pipeline has no enable.

    Ports
    -----
    a, b: operands.
    o: product, NaN as 0x7FC00000.
    """

    LATENCY = {("operands", "product"): PLAIN_MULTIPLIER_LATENCY}
    RATE = "1 product per cycle"

    a: In(32)
    b: In(32)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.multiplier = multiplier = Shared(FloatMultiplier(), "float_multiplier")
        for name in ("a", "b"):
            m.submodules[f"recoder_{name}"] = recoder = Shared(Recoder(), "recoder")
            m.d.comb += [
                recoder.i.eq(getattr(self, name)), getattr(multiplier, name).eq(recoder.o),
            ]
        m.d.comb += self.o.eq(multiplier.o)
        return m
