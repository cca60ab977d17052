"""One lane of :class:`~rtl.float.code.CodeConverter`."""

from functools import partial

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.code_pair import BIAS_BITS, CODE_PAIR, FINE, GROUPS
from rtl.float.delay import delayed

__all__ = ["CODE_LANE_LATENCY", "CodeLane"]

CODE_LANE_LATENCY = 8
"""Cycles from the code of :class:`CodeLane` to its value."""

_SUM_BITS = 1 + BIAS_BITS
"""Bits of a sum, with its carry bit."""

_GUARD = _SUM_BITS - 25
"""Place of the guard bit of a normalised sum."""

_register = partial(Signal, reset_less=True)


class CodeLane(wiring.Component):
    """Compute ``o = code * scale + bias``: one lane of :class:`~rtl.float.code.CodeConverter`.

    The product is exact. Its alignment to a larger bias begins in the factors of the DSP, by up to
    7 places. The pipeline has no enable.

    Ports
    -----
    code: In(8), unsigned.
    pair: :data:`~rtl.float.code_pair.CODE_PAIR`; its first field with the code.
    o: Out(32), NaN as 0x7FC00000.
    """

    LATENCY = {("code", "value"): CODE_LANE_LATENCY}
    RATE = "1 value per cycle"

    code: In(8)
    pair: In(CODE_PAIR)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        pair = self.pair

        # 1 and 2: the product, 7 places above the point; the DSP shifts by the lower places.
        factor, product = _register(8 + 6), _register(8 + 24 + 7)
        m.d.sync += [
            factor.eq(Array(self.code << 6 - 2 * pairs for pairs in range(4))[pair.even]),
            product.eq(factor * pair.significand),
        ]
        zero = delayed(m, ~self.code.any(), 7, "zero")

        # 3: align by whole bytes. The lowest bit is the sticky bit.
        aligned = _register(BIAS_BITS)
        point = 7 - 3
        m.d.sync += aligned.eq(Array(
            product[point + 8 * places:] | product[:point + 8 * places].any()
            for places in range(4))[pair.bytes])

        # 4 and 5: add or subtract. -x is ~x + 1; without the 1, the difference of a larger bias is
        # the complement of the result.
        total, whole = _register(_SUM_BITS), _register(_SUM_BITS)
        subtract4, subtract5, sign5 = _register(), _register(), _register()
        more = total[-1]
        below = subtract4 & ~more
        m.d.sync += [
            total.eq(aligned + (pair.bias ^ pair.subtract.replicate(BIAS_BITS))),
            subtract4.eq(pair.subtract), subtract5.eq(subtract4),
            whole.eq(Cat(total[:-1] ^ below.replicate(BIAS_BITS), more & ~subtract4)
                     + (subtract4 & more)),
            sign5.eq(pair.sign ^ below),
        ]

        # 6: shift left by whole groups, at most to the end.
        groups = [whole[max(0, _SUM_BITS - FINE * (number + 1)):_SUM_BITS - FINE * number]
                  for number in range(GROUPS)]
        number, reached, zero_sum = Signal(range(GROUPS)), Signal(), ~whole.any()
        m.d.comb += [number.eq(GROUPS - 1), reached.eq(pair.limit[-1])]
        for place in reversed(range(GROUPS - 1)):
            with m.If(groups[place].any() | pair.limit[place]):
                m.d.comb += [number.eq(place), reached.eq(pair.limit[place])]
        partly, exponent6, ends, none, sign6 = (
            _register(_SUM_BITS), _register(6), _register(), _register(), _register())
        moved = Array((whole << FINE * place)[:_SUM_BITS] for place in range(GROUPS))[number]
        m.d.sync += [
            partly.eq(moved), exponent6.eq(pair.exponent[3:] - number), ends.eq(reached),
            none.eq(zero_sum),
            # x - x = +0 for any sign of x.
            sign6.eq(sign5 & ~(subtract5 & zero_sum)),
        ]

        # 7: shift left within the group; the last place waits for the rounding.
        top = Signal(FINE)
        by4, by2, by1 = Signal(), Signal(), Signal()
        m.d.comb += [
            top.eq(partly[-FINE:] | (pair.place & ends.replicate(FINE))),
            by4.eq(~top[4:].any()),
            by2.eq(Mux(by4, ~top[2:4].any(), ~top[6:].any())),
            by1.eq(Mux(by4, Mux(by2, ~top[1], ~top[3]), Mux(by2, ~top[5], ~top[7]))),
        ]
        # From the place below the guard bit on, and the sticky bit of the rest.
        base = _GUARD - 1
        normal7, rest7, last = _register(_SUM_BITS - base), _register(), _register()
        exponent7, sign7 = _register(9), _register()
        m.d.sync += [
            normal7.eq(Array(partly[base - 2 * pairs:] for pairs in range(4))[Cat(by2, by4)]),
            rest7.eq(Array(partly[:base - 2 * pairs].any() for pairs in range(4))[Cat(by2, by4)]),
            last.eq(by1), exponent7.eq(Cat(pair.low, exponent6) - Cat(by1, by2, by4)),
            sign7.eq(sign6),
        ]
        with m.If(none):
            m.d.sync += exponent7.eq(0)

        # 8: round to nearest even; a carry propagates into the exponent, up to infinity. The
        # exponent counts from the carry bit, so a hidden bit adds 1 to it. For code 0 the alignment
        # may have lost bits of the bias, but not its sign; its guard bit is 0.
        normal = Mux(last, normal7 << 1, normal7)[:len(normal7)]
        guard, rest, odd, hidden = normal[1], normal[0] | rest7, normal[2], normal[-1]
        packed, o = Signal(31), _register(32)
        m.d.comb += [
            packed.eq((
                Cat(Const(1, 1), Mux(zero, pair.kept, Cat(normal[2:-1], exponent7[:8])))
                + Cat(guard & (rest | odd), Const(0, 23), hidden & ~zero))[1:32]),
            self.o.eq(o),
        ]
        m.d.sync += o.eq(Cat(packed, sign7))
        with m.If(pair.nan | (zero & pair.invalid)):
            m.d.sync += o.eq(0x7FC00000)
        with m.Elif(pair.infinite | exponent7[8] | exponent7[1:8].all()):
            m.d.sync += o.eq(Cat(Const(0xFF << 23, 31), sign7))
        return m
