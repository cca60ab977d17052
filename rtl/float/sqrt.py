"""Float32 square root: IEEE-754 binary32, round to nearest even."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.recode import RECODER_LATENCY, Recoder
from rtl.shared import Shared

__all__ = ["FLOAT_ROOT_LATENCY", "FloatRoot"]

_BITS = 25
"""Bits of a root before rounding: the leading 1, 23 of the fraction, and a rounding bit."""

_BITS_PER_CYCLE = 2
_STAGES = (_BITS - 1) // _BITS_PER_CYCLE

FLOAT_ROOT_LATENCY = RECODER_LATENCY + _STAGES + 1
"""Cycles from the operand of :class:`FloatRoot` to its root."""

_State = data.StructLayout({"exponent": 8, "sign": 1, "zero": 1, "infinite": 1, "nan": 1})


class FloatRoot(wiring.Component):
    """Compute the square root ``o`` of ``i`` in binary32, subnormals included; NaN is 0x7FC00000.

    The operand is normalised to a significand between 1 and 4 and an even exponent, so the root's
    leading bit is 1. The other bits are computed one by one, without restoring, with two digits of
    the significand each. With the root ``q`` so far, a remainder of at least 0 is followed by ``4
    rest + digits - (4 q + 1)``, a negative remainder by ``4 rest + digits + (4 q + 3)``. Both equal
    ``4 (rest + (q or ~q)) + digits + 3``, one adder as wide as the current root.

    No root of a binary32 is half-way between two of them (its square would need twice as many
    bits), so one more bit decides the rounding. No root is subnormal. The pipeline has no enable.

    Ports
    -----
    i: operand.
    o: root. The root of -0 is -0; the root of a negative number is NaN.
    """

    LATENCY = {("operand", "root"): FLOAT_ROOT_LATENCY}
    RATE = "1 root per cycle"

    i: In(32)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.recoder = recoder = Shared(Recoder(), "recoder")
        m.d.comb += recoder.i.eq(self.i)
        operand = recoder.o
        none, even = Signal(), Signal()
        m.d.comb += [
            # Zero is the only exponent below -128.
            none.eq(operand.exponent[7:9] == 0b10),
            # The field counts from 127, so it is odd if the exponent is even.
            even.eq(operand.exponent[0]),
        ]
        # Without a reset, these become shift registers in LUTs.
        state = [Signal(_State, name=f"state{k}", reset_less=True) for k in range(_STAGES)]
        m.d.sync += [
            # Half of the exponent, rounded down: field and bias exceed its double by 64 + 127.
            state[0].exponent.eq((operand.exponent + 191) >> 1),
            state[0].sign.eq(operand.sign), state[0].zero.eq(none),
            state[0].infinite.eq(operand.infinite),
            state[0].nan.eq(operand.nan | (operand.sign & ~none)),
        ]
        m.d.sync += [after.eq(before) for before, after in pairwise(state)]

        # Two bits before the point, 1 to 3, and 24 after it. The root's first bit subtracts 1.
        digits, half = Signal(24), operand.fraction[-1]
        m.d.comb += digits.eq(Mux(even, Cat(Const(0, 1), operand.fraction),
                                  Cat(Const(0, 2), operand.fraction[:-1])))
        rest, root = Cat(~even & ~half, ~even & half, Const(0, 1)), Const(1, 1)
        for stage in range(_STAGES):
            for step in range(_BITS_PER_CYCLE):
                width = len(rest)
                # Two digits and 3; after the significand there are only zeros.
                low, carry = Const(3, 2), Const(0, 1)
                if len(digits):
                    pair, digits = digits[-2:], digits[:-2]
                    low, carry = Cat(~pair[0], ~(pair[0] ^ pair[1])), pair.any()
                term = Cat(root, Const(0, width - len(root))) ^ (~rest[-1]).replicate(width)
                value = Signal(width + 1, name=f"value{stage}_{step}")
                m.d.comb += value.eq(Cat(low, (Cat(carry, rest) + Cat(carry, term))[1:width]))
                rest, root = value, Cat(~value[-1], root)
            registers = [Signal(len(value), name=f"{name}{stage}") for name, value in (
                ("rest", rest), ("root", root), ("digits", digits))]
            m.d.sync += [register.eq(value) for register, value in zip(
                registers, (rest, root, digits))]
            rest, root, digits = registers

        final = state[-1]
        m.d.sync += self.o.eq(Cat((root[1:24] + root[0])[:23], final.exponent, Const(0, 1)))
        with m.If(final.nan):
            m.d.sync += self.o.eq(0x7FC00000)
        with m.Elif(final.infinite):
            m.d.sync += self.o.eq(0x7F800000)
        with m.Elif(final.zero):
            m.d.sync += self.o.eq(Cat(Const(0, 31), final.sign))
        return m
