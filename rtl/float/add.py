"""Float32 adder: IEEE-754 binary32, round to nearest even."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import shift_right

__all__ = ["FLOAT_ADDER_LATENCY", "FloatAdder"]

FLOAT_ADDER_LATENCY = 6
"""Cycles from the operands of :class:`FloatAdder` to their sum."""

_SUM_BITS = 28
"""Carry, 24 bits of significand, guard, round and sticky bit."""

_Special = data.StructLayout({"sign": 1, "subtract": 1, "keep": 1, "nan": 1, "infinite": 1})


class FloatAdder(wiring.Component):
    """``o = a + b`` in binary32, subnormals included; NaN is always 0x7FC00000.

    The significand of the operand of smaller magnitude is aligned with three more bits (guard,
    round, sticky), which are enough for one rounding: a difference that loses more than one leading
    bit has exponents at most one apart, and is exact.

    Latency and rate: see ``LATENCY`` and ``RATE``. There is no enable: the user must take
    each sum when it is ready.

    Parameters: ``keep``: whether to have a port of that name, which costs 33 LUTs.

    Ports: ``a``, ``b``: operands; ``keep``: ``o`` is ``a``, bit for bit, NaN included; ``o``.
    """

    LATENCY = {("operands", "sum"): FLOAT_ADDER_LATENCY}
    RATE = "1 sum per cycle"

    def __init__(self, *, keep: bool = True):
        super().__init__({"a": In(32), "b": In(32), **({"keep": In(1)} if keep else {}),
                          "o": Out(32)})
        self._keep = keep

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: order by magnitude. Adding -0 changes nothing but the bits of a NaN.
        b, swap, keep = Signal(32), Signal(), self.keep if self._keep else Const(0, 1)
        m.d.comb += [
            b.eq(Mux(keep, 1 << 31, self.b)),
            swap.eq(self.a[:31] < b[:31]),
        ]
        larger, smaller, distance = Signal(8), Signal(8), Signal(8)
        some_a, some_b = self.a[23:31].any(), b[23:31].any()
        m.d.comb += [
            # An exponent field of 0 means 1, and no hidden bit.
            larger.eq(Mux(swap, b[23:31] | ~some_b, self.a[23:31] | ~some_a)),
            smaller.eq(Mux(swap, self.a[23:31] | ~some_a, b[23:31] | ~some_b)),
            distance.eq(larger - smaller),
        ]
        first, second, swapped = Signal(24), Signal(24), Signal()
        near, exponent1, flags1 = Signal(5), Signal(8), Signal(_Special)
        unlike1 = Signal()
        m.d.sync += [
            first.eq(Cat(self.a[:23], some_a)), second.eq(Cat(b[:23], some_b)), swapped.eq(swap),
            exponent1.eq(larger),
            # After 31 places no bit of a significand is left.
            near.eq(distance[:5] | distance[5:].any().replicate(5)),
            unlike1.eq(smaller.all() & (self.a[31] ^ b[31])),
            flags1.sign.eq(Mux(swap, b[31], self.a[31])),
            flags1.subtract.eq(self.a[31] ^ b[31]),
            flags1.keep.eq(keep),
        ]

        # 2: begin to align the smaller significand. The first two steps lose only
        # zeros.
        large, small = Mux(swapped, second, first), Mux(swapped, first, second)
        partly, lost = shift_right(Cat(Const(0, 3), small), near, (1, 2, 4))
        shifted2, lost2, far, significand = Signal(27), Signal(), Signal(5), Signal(24)
        exponent2, unlike2, flags2 = Signal(8), Signal(), Signal(_Special)
        m.d.sync += [
            shifted2.eq(partly), lost2.eq(lost), far.eq(near), significand.eq(large),
            exponent2.eq(exponent1), unlike2.eq(unlike1), flags2.eq(flags1),
            flags2.infinite.eq(exponent1.all() & ~flags1.keep),
        ]

        # 3: shift to the end, and add or subtract.
        shifted, lost = shift_right(shifted2, far, (8, 16))
        total, exponent3, flags3 = Signal(_SUM_BITS), Signal(8), Signal(_Special)
        # One adder: -x is ~x + 1, and the 1 enters at a bit below the others.
        change = (shifted | lost | lost2) ^ flags2.subtract.replicate(27)
        raised = Cat(flags2.subtract, Const(0, 3), significand) + Cat(flags2.subtract, change)
        m.d.sync += [
            # A difference is positive: its carry out only says so, and is not part of it.
            total.eq(Cat(raised[1:28], raised[28] & ~flags2.subtract)),
            exponent3.eq(exponent2), flags3.eq(flags2),
            flags3.nan.eq(flags2.infinite & (significand[:23].any() | unlike2)),
        ]

        # 4: normalise, by 16 and by 8. A step is taken if the bits above are 0 and the exponent
        # allows it: a subnormal result is shifted no further than its exponent allows.
        by16, by8, left16, left8 = Signal(), Signal(), Signal(_SUM_BITS), Signal(_SUM_BITS)
        ample, fourth = exponent3[5:].any(), Signal()
        m.d.comb += [
            by16.eq(~total[-16:].any() & (ample | exponent3[4])),
            left16.eq(Mux(by16, total << 16, total)),
            fourth.eq(exponent3[4] & ~by16),
            by8.eq(~Mux(by16, total[4:12], total[20:28]).any() & (ample | fourth | exponent3[3])),
            left8.eq(Mux(by8, left16 << 8, left16)),
        ]
        total4, exponent4, done, ample4 = Signal(_SUM_BITS), Signal(8), Signal(2), Signal()
        none, flags4 = Signal(), Signal(_Special)
        m.d.comb += none.eq(~total.any())
        m.d.sync += [
            total4.eq(left8), exponent4.eq(exponent3), done.eq(Cat(by8, by16)),
            # At least 8 of the exponent is left.
            ample4.eq(ample | fourth | (exponent3[3] & ~by8)),
            flags4.eq(flags3),
            # x - x = +0, whatever the sign of x.
            flags4.sign.eq(flags3.sign & ~(flags3.subtract & none)),
        ]
        none4 = Signal()
        m.d.sync += none4.eq(none)

        # 5: by 4 and by 2; the last step waits for the rounding.
        by4, by2, by1, second2 = Signal(), Signal(), Signal(), Signal()
        top4, top2 = Signal(4), Signal(2)
        left4, left2 = Signal(_SUM_BITS), Signal(_SUM_BITS)
        m.d.comb += [
            by4.eq(~total4[-4:].any() & (ample4 | exponent4[2])),
            left4.eq(Mux(by4, total4 << 4, total4)), top4.eq(left4[-4:]),
            second2.eq(exponent4[2] & ~by4),
            by2.eq(~top4[2:].any() & (ample4 | second2 | exponent4[1])),
            left2.eq(Mux(by2, left4 << 2, left4)), top2.eq(left2[-2:]),
            by1.eq(~top2[1] & (ample4 | second2 | (exponent4[1] & ~by2) | exponent4[0])),
        ]
        total5, exponent5, last, flags5 = Signal(_SUM_BITS), Signal(8), Signal(), Signal(_Special)
        m.d.sync += [
            total5.eq(left2), last.eq(by1), flags5.eq(flags4),
            exponent5.eq(exponent4 - Cat(by1, by2, by4, done)),
        ]
        with m.If(none4):
            m.d.sync += exponent5.eq(0)

        # 6: round to nearest even; a carry propagates into the exponent, up to infinity. The rest
        # of the exponent counts from the carry bit, so that a hidden bit adds 1 to it.
        normal = Mux(last, total5 << 1, total5)[:_SUM_BITS]
        guard, rest, odd = normal[3], normal[:3].any(), normal[4]
        packed = Signal(31)
        m.d.comb += packed.eq((
            Cat(Const(1, 1), normal[4:27], exponent5)
            + Cat(guard & (rest | odd), Const(0, 23), normal[27]))[1:32])
        m.d.sync += self.o.eq(Cat(packed, flags5.sign))
        with m.If(flags5.nan):
            m.d.sync += self.o.eq(0x7FC00000)
        with m.Elif(flags5.infinite | (~flags5.keep & exponent5[1:].all())):
            m.d.sync += self.o.eq(Cat(Const(0xFF << 23, 31), flags5.sign))
        return m
