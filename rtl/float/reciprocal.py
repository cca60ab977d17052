"""Reciprocal of a count, exact enough to divide a float32 by it."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import leading_zeros

__all__ = ["COUNT_BITS", "RECIPROCAL_BITS", "RECIPROCAL_LATENCY", "CountReciprocal"]

COUNT_BITS = 16
"""Bits of a count; it is at least 1."""

RECIPROCAL_BITS = 42
"""Bits of a reciprocal after the point."""

_BITS_PER_CYCLE = 2
_STEPS = RECIPROCAL_BITS // _BITS_PER_CYCLE
RECIPROCAL_LATENCY = 2 + _STEPS + 1
"""Cycles from the count of :class:`CountReciprocal` to its reciprocal."""


class CountReciprocal(wiring.Component):
    """Compute the reciprocal of a count by division without restoring, two bits per cycle.

    With ``exponent`` = floor(log2(``n``)), ``o`` exceeds 2^(``exponent`` + 42) / ``n`` by 0 to 1.
    The pipeline has no enable.

    Ports
    -----
    n: 16 bits, at least 1; the result for 0 is undefined.
    o: 43 bits.
    exponent: 4 bits.
    """

    LATENCY = {("count", "reciprocal"): RECIPROCAL_LATENCY}
    RATE = "1 count per cycle"

    n: In(COUNT_BITS)
    o: Out(RECIPROCAL_BITS + 1)
    exponent: Out(4)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1 and 2: shift the count until its highest bit is 1.
        count, zeros = Signal(COUNT_BITS, reset_less=True), Signal(4, reset_less=True)
        m.d.sync += [count.eq(self.n), zeros.eq(leading_zeros(self.n))]
        divisor, exponent = Signal(COUNT_BITS, reset_less=True), Signal(4, reset_less=True)
        m.d.sync += [divisor.eq(count << zeros), exponent.eq(~zeros)]

        # Then 2^57 / divisor, bit by bit: a negative remainder is corrected in the next step, which
        # adds the divisor instead of subtracting it. The remainder starts with the highest bit.
        remainder: Signal | Const = Const(1 << (COUNT_BITS - 1), COUNT_BITS + 1)
        quotient = Const(0, 0)
        for step in range(_STEPS):
            for _ in range(_BITS_PER_CYCLE):
                subtract = ~remainder[-1]
                # -x is ~x + 1; the 1 takes the place of the remainder's next bit, which is 0.
                term = Cat(divisor, 0) ^ subtract.replicate(COUNT_BITS + 1)
                value = Signal(COUNT_BITS + 1)
                m.d.comb += value.eq(Cat(subtract, remainder[:-1]) + term)
                remainder, quotient = value, Cat(~value[-1], quotient)
            stage = [Signal(len(value), reset_less=True, name=f"{name}{step}") for name, value in (
                ("remainder", remainder), ("quotient", quotient), ("divisor", divisor),
                ("exponent", exponent))]
            m.d.sync += [register.eq(value) for register, value in zip(
                stage, (remainder, quotient, divisor, exponent))]
            remainder, quotient, divisor, exponent = stage

        # A quotient of all ones, for the divisor 2^15, becomes the exact 1.0.
        m.d.sync += [self.o.eq(quotient + 1), self.exponent.eq(exponent)]
        return m
