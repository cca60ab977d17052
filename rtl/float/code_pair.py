"""Scale and bias of :class:`~rtl.float.code.CodeConverter`: the work that its lanes share."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.delay import delayed

__all__ = ["BIAS_BITS", "CODE_PAIR", "CODE_PAIR_LATENCY", "FINE", "GROUPS", "CodePair"]

CODE_PAIR_LATENCY = 3
"""Cycles from the operands of :class:`CodePair` to the first field of its result."""

BIAS_BITS = 8 + 24 + 3
"""Bits of an aligned operand: a code times a significand, guard, round and sticky bit."""

FINE = 8
"""Bits of a group; a sum is shifted left by whole groups, and then within a group."""

GROUPS = -(-(1 + BIAS_BITS) // FINE)
"""Groups of a sum, which has a carry bit more than its operands."""

CODE_PAIR = data.StructLayout({
    "even": 2,
    "significand": 25,
    "bytes": 2,
    "subtract": 1, "bias": BIAS_BITS,
    "sign": 1,
    "exponent": 9, "limit": GROUPS,
    "low": 3, "place": FINE,
    "kept": 31, "infinite": 1, "nan": 1, "invalid": 1,
})
"""Fields of a scale and a bias, as a lane needs them. Each field has its own cycle:

0, even: distance by which the product is shifted right, bits 1 and 2.
1, significand: of the scale, doubled if bit 0 of the distance is 0.
2, bytes: bits 3 and 4 of the distance.
3, subtract: the signs differ. bias: aligned significand of the bias.
4, sign: sign of the scale.
5, exponent: exponent field of a sum whose highest bit is below the carry bit. limit: the group in
which a left shift ends, because the exponent field is 0; bit 0 is the highest group.
6, low: ``exponent[:3]``. place: the bit of that group in which the shift ends.
7, kept: value of code 0, without its sign. infinite: scale or bias is infinite. nan: NaN for all
codes. invalid: NaN for code 0.
"""

_register = partial(Signal, reset_less=True)


def _shifted(value: Value, distance: Value, unit: int) -> Value:
    """Return ``value`` shifted right by ``unit`` times ``distance``, 2 bits. The lowest bit is a
    sticky bit."""
    once, twice, thrice = (Cat(value[places:], Const(0, 1)) | value[:places].any()
                           for places in (unit, 2 * unit, 3 * unit))
    return Value.cast(Mux(distance[1], Mux(distance[0], thrice, twice),
                          Mux(distance[0], once, value)))


class CodePair(wiring.Component):
    """Prepare a scale and a bias for the lanes of :class:`~rtl.float.code.CodeConverter`.

    The highest bit of a product of 8 x 24 bits has the scale's exponent plus 8. The bias is aligned
    to it, or the product to the bias, whichever has the smaller exponent. A product is a multiple
    of the smallest subnormal, so a subnormal result is exact. The pipeline has no enable.

    Ports
    -----
    scale, bias: In(32), binary32.
    o: :data:`CODE_PAIR`.
    """

    LATENCY = {("scale and bias", "first field"): CODE_PAIR_LATENCY}
    RATE = "1 pair per cycle"

    scale: In(32)
    bias: In(32)
    o: Out(CODE_PAIR)

    def elaborate(self, platform) -> Module:
        m = Module()
        scale, bias, o, after = self.scale, self.bias, self.o, partial(delayed, m)

        # 1: an exponent field of 0 means 1, without a hidden bit.
        some_scale, some_bias = scale[23:31].any(), bias[23:31].any()
        scale1, bias1, fraction1, significand1 = (
            _register(8), _register(8), _register(24), _register(24))
        scale_infinite, bias_infinite, nan1 = _register(), _register(), _register()
        scale_top, bias_top = scale[23:31].all(), bias[23:31].all()
        m.d.sync += [
            scale1.eq(scale[23:31] | ~some_scale), bias1.eq(bias[23:31] | ~some_bias),
            fraction1.eq(Cat(scale[:23], some_scale)), significand1.eq(Cat(bias[:23], some_bias)),
            scale_infinite.eq(scale_top), bias_infinite.eq(bias_top),
            nan1.eq((scale_top & scale[:23].any()) | (bias_top & bias[:23].any())
                    | (scale_top & bias_top & (scale[31] ^ bias[31]))),
        ]

        # 2: how far the bias is below the product, and the reverse.
        right2, left2 = _register(signed(10)), _register(signed(10))
        scale2, fraction2 = _register(9), _register(24)
        m.d.sync += [
            right2.eq(scale1 + 8 - bias1), left2.eq(bias1 - 8 - scale1), scale2.eq(scale1 + 8),
            # The sign of an infinite bias is that of the sum.
            fraction2.eq(Mux(bias_infinite, 0, fraction1)),
        ]

        # 3: the distances; after 63 and 31 places no bit has an effect but as a sticky bit.
        less = right2[-1]
        right3, left3, exponent3 = _register(6), _register(5), _register(9)
        bias2 = after(bias1, 1, "bias_exponent")
        m.d.sync += [
            right3.eq(Mux(less, 0, right2[:6] | right2[6:9].any().replicate(6))),
            left3.eq(Mux(less, left2[:5] | left2[5:9].any().replicate(5), 0)),
            exponent3.eq(Mux(less, bias2, scale2)),
        ]
        fraction3 = after(fraction2, 1, "fraction")
        m.d.comb += [o.even.eq(left3[1:3]), o.bytes.eq(after(left3[3:5], 2, "bytes"))]

        # 4 to 6: align.
        significand, aligned = _register(25), Cat(Const(0, BIAS_BITS - 24),
                                                  after(significand1, 2, "significand"))
        m.d.sync += significand.eq(Mux(left3[0], fraction3, Cat(Const(0, 1), fraction3)))
        for low, stage in ((4, 4), (2, 5), (0, 6)):
            part = _register(BIAS_BITS, name=f"aligned{stage}")
            distance = after(right3[low:low + 2], stage - 4, f"right{low}")
            m.d.sync += part.eq(_shifted(aligned, distance, 1 << low))
            aligned = part
        m.d.comb += [
            o.significand.eq(significand), o.bias.eq(aligned),
            o.subtract.eq(after(scale[31] ^ bias[31], 6, "subtract")),
            o.sign.eq(after(scale[31], 7, "sign")),
        ]

        # 8 and 9: the end of a left shift.
        exponent7, exponent8 = after(exponent3, 4, "exponent"), _register(9)
        limit, place, low = _register(GROUPS), _register(FINE), _register(3)
        m.d.sync += [
            exponent8.eq(exponent7),
            limit.eq(Cat(exponent7[3:] == group for group in range(GROUPS))),
            low.eq(exponent8[:3]),
            place.eq(Cat(exponent8[:3] == FINE - 1 - bit for bit in range(FINE))),
        ]
        m.d.comb += [o.exponent.eq(exponent8), o.limit.eq(limit), o.low.eq(low), o.place.eq(place)]

        # 10: special operands.
        m.d.comb += [
            o.kept.eq(after(bias[:31], 10, "kept")), o.nan.eq(after(nan1, 9, "nan")),
            o.infinite.eq(after(scale_infinite | bias_infinite, 9, "infinite")),
            o.invalid.eq(after(scale_infinite, 9, "invalid")),
        ]
        return m
