"""Division of float32 vectors by a count: IEEE-754 binary32, round to nearest even."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.reciprocal import (
    COUNT_BITS,
    RECIPROCAL_BITS,
    RECIPROCAL_LATENCY,
    CountReciprocal,
)
from rtl.float.round import ROUNDER_LATENCY, ProductRounder
from rtl.shared import Shared

__all__ = ["COUNT_DIVIDER_LANE_LATENCY", "COUNT_DIVIDER_LATENCY", "CountDivider",
           "CountDividerLane"]

COUNT_DIVIDER_LANE_LATENCY = 4 + ROUNDER_LATENCY
"""Cycles from the operands of :class:`CountDividerLane` to its quotient."""

COUNT_DIVIDER_LATENCY = RECIPROCAL_LATENCY + COUNT_DIVIDER_LANE_LATENCY - 1
"""Cycles from the operands of :class:`CountDivider` to its quotients."""

_DSP_BITS = 17
"""Bits of an unsigned factor that fit a DSP's shorter port; its cascade shifts by as much."""

_State = data.StructLayout({"scale": signed(11), "sign": 1, "infinite": 1, "nan": 1})


class CountDivider(wiring.Component):
    """Compute ``o = x / n`` in 16 lanes of binary32, subnormals included: a mean from a sum.

    One reciprocal of ``n`` serves all lanes. Its product with a significand is the quotient in
    units of its last place, or of twice that, too large by less than 2^-18. A quotient that is not
    a tie is at least 1 / (4 ``n``) away from any tie, which is more than 2^-18. The bits down to
    2^-18 therefore decide the rounding and show exact quotients. (After T. Granlund and P.
    Montgomery, "Division by Invariant Integers using Multiplication", 1994.) The pipeline has no
    enable.

    Ports
    -----
    x: In(512), 16 binary32, lane 0 lowest.
    n: In(16), at least 1; quotients by 0 are undefined.
    o: Out(512), NaN as 0x7FC00000.
    """

    LATENCY = {("sum and count", "quotients"): COUNT_DIVIDER_LATENCY}
    RATE = "1 beat per cycle"

    x: In(32 * LANES)
    n: In(COUNT_BITS)
    o: Out(32 * LANES)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.reciprocal = reciprocal = CountReciprocal()
        m.d.comb += reciprocal.n.eq(self.n)
        # Without a reset, these become shift registers in LUTs.
        waiting = self.x
        for stage in range(RECIPROCAL_LATENCY - 1):
            following = Signal(32 * LANES, reset_less=True, name=f"waiting{stage}")
            m.d.sync += following.eq(waiting)
            waiting = following
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = unit = Shared(CountDividerLane(), "count_divider_lane")
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                unit.x.eq(waiting[bits]), unit.factor.eq(reciprocal.o),
                unit.exponent.eq(reciprocal.exponent), self.o[bits].eq(unit.o),
            ]
        return m


class CountDividerLane(wiring.Component):
    """Divide ``x`` by a count with a given reciprocal: one lane of :class:`CountDivider`.

    The pipeline has no enable.

    Ports
    -----
    x: In(32), binary32.
    factor, exponent: one cycle later, the outputs of :class:`~rtl.float.reciprocal.CountReciprocal`
        for the count.
    o: Out(32), NaN as 0x7FC00000.
    """

    LATENCY = {("value", "quotient"): COUNT_DIVIDER_LANE_LATENCY}
    RATE = "1 value per cycle"

    x: In(32)
    factor: In(RECIPROCAL_BITS + 1)
    exponent: In(4)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: the hidden bit: a DSP takes most of a cycle.
        x, hidden = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.sync += [x.eq(self.x), hidden.eq(self.x[23:31].any())]

        # 2: partial products. A subnormal's significand need not be normalised, because its
        # quotient is no larger.
        fraction, field = x[:23], x[23:31]
        significand = Cat(fraction, hidden)
        parts = [self.factor[low:low + _DSP_BITS]
                 for low in range(0, len(self.factor), _DSP_BITS)]
        low, middle, high = (Signal(24 + len(part)) for part in parts)
        state = [Signal(_State, name=f"state{k}") for k in range(3)]
        m.d.sync += [
            *(product.eq(significand * part) for product, part in zip((low, middle, high), parts)),
            state[0].scale.eq((field | ~hidden) - 2 - self.exponent),
            state[0].sign.eq(x[31]),
            state[0].infinite.eq(field.all() & ~fraction.any()),
            state[0].nan.eq(field.all() & fraction.any()),
        ]

        # 3 and 4: their sum, without bits that have no effect.
        sum2, high2 = Signal(len(middle) + 1), Signal.like(high)
        sum3, below = Signal(len(high)), Signal(_DSP_BITS)
        m.d.sync += [
            sum2.eq(middle + (low >> _DSP_BITS)), high2.eq(high),
            sum3.eq(high2 + (sum2 >> _DSP_BITS)), below.eq(sum2),
            state[1].eq(state[0]), state[2].eq(state[1]),
        ]
        # Bit 42 of the sum is a unit, and bit 24 is 2^-18.
        product = Cat(below, sum3)
        point = RECIPROCAL_BITS - _DSP_BITS

        m.submodules.rounder = rounder = ProductRounder()
        m.d.comb += [
            rounder.significand.eq(product[point - 2:point + 24]),
            rounder.sticky.eq(product[point - 18:point - 2].any()),
            rounder.scale.eq(state[1].scale), rounder.sign.eq(state[2].sign),
            rounder.infinite.eq(state[2].infinite), rounder.nan.eq(state[2].nan),
            self.o.eq(rounder.o),
        ]
        return m
