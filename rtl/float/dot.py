"""Dot product of one slice of two vectors, added to the sum of earlier slices."""

from amaranth.hdl import Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.add import FLOAT_ADDER_LATENCY, MINUS_ZERO, FloatAdder
from rtl.float.multiply import FLOAT_MULTIPLIER_LATENCY, FloatMultiplier
from rtl.float.recode import RECODED
from rtl.shared import Shared

__all__ = ["DOT_LATENCY", "DOT_TREE_LATENCY", "RECODED_SLICE", "DotProduct", "dot_tree_latency"]

RECODED_SLICE = data.ArrayLayout(RECODED, LANES)
"""One slice of a vector: 16 recoded lanes, lane 0 lowest."""


def dot_tree_latency(lanes: int) -> int:
    """Return the cycles from the operands of ``lanes`` of a :class:`DotProduct` to their sum."""
    return FLOAT_MULTIPLIER_LATENCY + (lanes - 1).bit_length() * FLOAT_ADDER_LATENCY


DOT_TREE_LATENCY = dot_tree_latency(LANES)
"""Cycles from the operands of :class:`DotProduct` to the sum of its tree; ``previous`` and
``first`` must be valid at this cycle."""

DOT_LATENCY = DOT_TREE_LATENCY + FLOAT_ADDER_LATENCY
"""Cycles from the operands of an accumulating :class:`DotProduct` to its sum."""


class DotProduct(wiring.Component):
    """Compute ``o = a . b`` or ``previous + a . b``: one slice of a dot product per cycle.

    Each product is rounded to binary32. One balanced tree adds neighbours, ((0+1)+(2+3)) + ..., and
    rounds each sum. Slices are added in ascending order: the surrounding block stores the sum of
    earlier slices and feeds it to ``previous``, so sums of many pairs may be in flight. The
    pipeline has no enable and no valid signal: the user tracks which sums are valid.

    Parameters
    ----------
    accumulate: add the port ``previous``. Without it, the latency is :func:`dot_tree_latency`
        cycles, and one adder is left out.
    lanes: number of multiplied lanes of a slice, a power of two. With less than 16, the latencies
        below are those of :func:`dot_tree_latency`.

    Ports
    -----
    a, b: In(RECODED_SLICE), or that many lanes, at cycle 0.
    first: In(1), at cycle :data:`DOT_TREE_LATENCY`: ``o`` is the tree's sum alone.
    previous: In(32), at cycle :data:`DOT_TREE_LATENCY`: the other operand of the last addition.
    o: Out(32), at cycle :data:`DOT_LATENCY`.
    """

    LATENCY = {
        ("operands", "sum of the tree"): DOT_TREE_LATENCY,
        ("operands", "sum with those before"): DOT_LATENCY,
    }
    RATE = "1 slice per cycle"

    def __init__(self, *, accumulate: bool = True, lanes: int = LANES):
        self._accumulate, self._lanes = accumulate, lanes
        operand = data.ArrayLayout(RECODED, lanes)
        ports = {"a": In(operand), "b": In(operand), "o": Out(32)}
        if accumulate:
            ports |= {"first": In(1), "previous": In(32)}
        super().__init__(ports)

    def elaborate(self, platform) -> Module:
        m = Module()

        def add(name: str, a: Value, b: Value, keep: Value | None = None) -> Value:
            plain = keep is None
            m.submodules[name] = adder = Shared(
                FloatAdder(keep=not plain), "float_adder_plain" if plain else "float_adder")
            m.d.comb += [adder.a.eq(a), adder.b.eq(b)]
            if not plain:
                m.d.comb += adder.keep.eq(keep)
            return adder.o

        terms: list[Value] = []
        for lane in range(self._lanes):
            unit = Shared(FloatMultiplier(), "float_multiplier")
            m.submodules[f"lane{lane}"] = unit
            m.d.comb += [unit.a.eq(self.a[lane]), unit.b.eq(self.b[lane])]
            terms.append(unit.o)
        level = 0
        while len(terms) > 1:
            terms = [add(f"sum{level}_{k}", terms[2 * k], terms[2 * k + 1])
                     for k in range(len(terms) // 2)]
            level += 1
        if self._accumulate:
            terms = [add("slices", terms[0], Mux(self.first, MINUS_ZERO, self.previous),
                         self.first)]
        m.d.comb += self.o.eq(terms[0])
        return m
