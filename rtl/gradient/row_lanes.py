"""Row lanes: subtract a step along its gradient from a row."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float import (
    FLOAT_ADDER_LATENCY,
    FLOAT_MULTIPLIER_LATENCY,
    MINUS_ZERO,
    RECODED,
    FloatAdder,
    FloatMultiplier,
)
from rtl.shared import Shared

__all__ = ["HALF", "HALF_BITS", "RECODED_HALF", "ROW_CYCLE", "ROW_LANES_LATENCY", "RowLanes"]

HALF = LANES // 2
"""Lanes of a beat processed per cycle; sums arrive at most once in two cycles."""

HALF_BITS = 32 * HALF
"""Bits of half a beat, the lower lanes first."""

RECODED_HALF = data.ArrayLayout(RECODED, HALF)
"""Half a slice of a vector, recoded."""

ROW_CYCLE = FLOAT_MULTIPLIER_LATENCY
"""Cycles from ``gradient`` of :class:`RowLanes` to ``row``."""

ROW_LANES_LATENCY = ROW_CYCLE + FLOAT_ADDER_LATENCY
"""Cycles from ``gradient`` of :class:`RowLanes` to the updated row."""


class RowLanes(wiring.Component):
    """Compute ``o = row - step * gradient`` in 8 lanes of binary32; product and difference are
    rounded.

    The pipeline has no enable.

    Ports
    -----
    step: In(RECODED), for all lanes, at cycle 0.
    gradient: In(RECODED_HALF), at cycle 0.
    row: In(256), at cycle :data:`ROW_CYCLE`.
    unused: In(8), at the same cycle, lanes that keep the row's value for any step: zeros stay
        zeros.
    o: Out(256), at cycle :data:`ROW_LANES_LATENCY`; NaN as 0x7FC00000 in the used lanes.
    """

    LATENCY = {("operands", "new values"): ROW_LANES_LATENCY}
    RATE = "half a beat per cycle"

    step: In(RECODED)
    gradient: In(RECODED_HALF)
    row: In(HALF_BITS)
    unused: In(HALF)
    o: Out(HALF_BITS)

    def elaborate(self, platform) -> Module:
        m = Module()
        for lane in range(HALF):
            bits = slice(32 * lane, 32 * lane + 32)
            product = Signal(32, name=f"product{lane}")
            multiplier = Shared(FloatMultiplier(), "float_multiplier")
            adder = Shared(FloatAdder(), "float_adder")
            m.submodules[f"multiplier{lane}"] = multiplier
            m.submodules[f"adder{lane}"] = adder
            m.d.comb += [
                multiplier.a.eq(self.step), multiplier.b.eq(self.gradient[lane]),
                product.eq(multiplier.o),
                adder.a.eq(self.row[bits]), adder.b.eq(Mux(
                    self.unused[lane], MINUS_ZERO, Cat(product[:31], ~product[31]))),
                adder.keep.eq(self.unused[lane]), self.o[bits].eq(adder.o),
            ]
        return m
