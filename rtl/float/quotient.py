"""Float32 division: IEEE-754 binary32, round to nearest even."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.recode import RECODER_LATENCY, Recoder
from rtl.float.round import ROUNDER_LATENCY, ProductRounder
from rtl.shared import Shared

__all__ = ["FLOAT_DIVIDER_LATENCY", "FloatDivider"]

_BITS = 26
"""Bits of a quotient before rounding: one before the point and 25 after it."""

_BITS_PER_CYCLE = 2
_STAGES = _BITS // _BITS_PER_CYCLE

FLOAT_DIVIDER_LATENCY = RECODER_LATENCY + _STAGES + 1 + ROUNDER_LATENCY
"""Cycles from the operands of :class:`FloatDivider` to their quotient."""

_State = data.StructLayout({"scale": signed(11), "sign": 1, "infinite": 1, "nan": 1})


class FloatDivider(wiring.Component):
    """Compute ``o = a / b`` in binary32, subnormals included; NaN is always 0x7FC00000.

    Both operands are normalised first, so the quotient of the significands is between 1/2 and 2. It
    is computed bit by bit, without restoring: a negative remainder is corrected in the next step,
    which adds the divisor instead of subtracting it. A step is one adder, and the final remainder
    shows exact quotients. The pipeline has no enable.

    Ports
    -----
    a, b: operands.
    o: quotient. x / 0 is infinite; 0 / 0 and infinite over infinite are NaN.
    """

    LATENCY = {("operands", "quotient"): FLOAT_DIVIDER_LATENCY}
    RATE = "1 quotient per cycle"

    a: In(32)
    b: In(32)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.recoder_a = recoder_a = Shared(Recoder(), "recoder")
        m.submodules.recoder_b = recoder_b = Shared(Recoder(), "recoder")
        m.d.comb += [recoder_a.i.eq(self.a), recoder_b.i.eq(self.b)]
        a, b = recoder_a.o, recoder_b.o

        # Zero is the only exponent below -128.
        none_a, none_b = (operand.exponent[7:9] == 0b10 for operand in (a, b))
        # Without a reset, these become shift registers in LUTs.
        state = [Signal(_State, name=f"state{k}", reset_less=True) for k in range(_STAGES + 1)]
        m.d.sync += [
            # The offsets of the two exponents cancel. x / infinity rounds to 0.
            state[0].scale.eq(Mux(b.infinite, -512, a.exponent - b.exponent + 125)),
            state[0].sign.eq(a.sign ^ b.sign), state[0].infinite.eq(a.infinite | none_b),
            state[0].nan.eq(a.nan | b.nan | (none_a & none_b) | (a.infinite & b.infinite)),
        ]
        m.d.sync += [after.eq(before) for before, after in pairwise(state)]

        divisor, quotient = Cat(b.fraction, Const(1, 1)), Const(0, 0)
        remainder = Value.cast(Cat(a.fraction, Const(1, 1)))
        for stage in range(_STAGES):
            for step in range(_BITS_PER_CYCLE):
                value = Signal(25, name=f"value{stage}_{step}")
                if stage == step == 0:
                    m.d.comb += value.eq(remainder - divisor)
                else:
                    subtract = ~remainder[-1]
                    # -x is ~x + 1; the 1 takes the place of the remainder's next bit, which is 0.
                    term = Cat(divisor, Const(0, 1)) ^ subtract.replicate(25)
                    m.d.comb += value.eq(Cat(subtract, remainder[:-1]) + term)
                remainder, quotient = value, Cat(~value[-1], quotient)
            registers = [Signal(len(value), name=f"{name}{stage}") for name, value in (
                ("remainder", remainder), ("quotient", quotient), ("divisor", divisor))]
            m.d.sync += [register.eq(value) for register, value in zip(
                registers, (remainder, quotient, divisor))]
            remainder, quotient, divisor = registers

        # An exact division leaves 0, or a remainder that the correction makes 0.
        significand, sticky = Signal(_BITS), Signal()
        m.d.sync += [
            significand.eq(quotient),
            sticky.eq(remainder.any() & ~_opposite(remainder, Cat(divisor, Const(0, 1)))),
        ]
        final = state[-1]
        m.submodules.rounder = rounder = ProductRounder()
        m.d.comb += [
            rounder.significand.eq(significand), rounder.sticky.eq(sticky),
            rounder.scale.eq(state[-2].scale), rounder.sign.eq(final.sign),
            rounder.infinite.eq(final.infinite), rounder.nan.eq(final.nan), self.o.eq(rounder.o),
        ]
        return m


def _opposite(a: Value, b: Value) -> Value:
    """Return whether the sum of two numbers of the same width is 0, without an addition.

    If it is, a position carries if either bit is 1, and the bits of the next position differ
    exactly with this carry.
    """
    return ((a ^ b) ^ ((a | b) << 1)[:len(a)] == 0)
