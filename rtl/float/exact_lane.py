"""One lane of a table of exact sums: adds terms to sums stored in a memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.exact import (
    EXACT,
    EXACT_SEGMENTS,
    EXACT_VALUE_BITS,
    SEGMENT_BITS,
    segment_slice,
)
from rtl.float.exact_place import EXACT_PLACER_LATENCY, PLACED, ExactPlacer

__all__ = ["CONTROL_LATENCY", "HELD_LATENCY", "LANE_CONTROL", "SUM_LATENCY", "ExactLane"]

LANE_CONTROL = data.StructLayout({"clear": 1, "again1": 1, "again2": 1})
"""Control of the addition of a term.

clear: the sum begins with this term.
again1, again2: the term 1 or 2 cycles earlier was added to the same sum; the nearest one is used.
"""

CONTROL_LATENCY = EXACT_PLACER_LATENCY
"""Cycles from ``x`` of :class:`ExactLane` to ``control``."""

HELD_LATENCY = CONTROL_LATENCY + 1
"""Cycles from ``x`` of :class:`ExactLane` to ``held`` (segment 0)."""

SUM_LATENCY = HELD_LATENCY + 1
"""Cycles from ``x`` of :class:`ExactLane` to ``sum`` (segment 0)."""


class ExactLane(wiring.Component):
    """Add one binary32 per cycle to one of many exact sums, which an external memory stores.

    A sum is divided into segments. Segment k is read, added to and written k cycles after segment
    0, so a segment's carry is in time for the next segment. A cycle adds at most
    :data:`~rtl.float.exact.SEGMENT_BITS` bits, and no carry is stored.

    The memory's output may be older than the last two terms of the same sum, which are still in
    registers. ``control`` then selects these registers instead. The memory's output is added
    without a register in between: a choice of three and the sum of two bits are one LUT, and a
    register before them would cost one more LUT for each of the 301 bits of a lane.

    The pipeline has no enable and no valid signal: the user decides whether to write a sum.

    Ports
    -----
    x: In(32), binary32, the term.
    control: In(:data:`LANE_CONTROL`), :data:`CONTROL_LATENCY` cycles after ``x``.
    held: In(EXACT), the memory's output; segment k :data:`HELD_LATENCY` + k cycles after ``x``.
    sum: Out(EXACT), the sum to write; segment k :data:`SUM_LATENCY` + k cycles after ``x``.
    """

    x: In(32)
    control: In(LANE_CONTROL)
    held: In(EXACT)
    sum: Out(EXACT)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.placer = placer = ExactPlacer()
        m.d.comb += placer.i.eq(self.x)

        term, control = placer.o, self.control
        # -x is ~x + 1: the 1 is carried into the lowest segment.
        carry = Signal(reset_less=True)
        m.d.sync += carry.eq(term.negative)
        for segment in range(EXACT_SEGMENTS):
            term_later = Signal(PLACED, reset_less=True, name=f"term{segment + 1}")
            control_later = Signal(LANE_CONTROL, reset_less=True, name=f"control{segment + 1}")
            m.d.sync += [term_later.eq(term), control_later.eq(control)]
            carry = self._segment(m, segment, term, control, carry)
            term, control = term_later, control_later
        return m

    def _segment(self, m: Module, segment: int, term, control, carry: Value) -> Value:
        """Add ``segment``; return its carry, in time for the next segment.

        ``term`` and ``control`` are valid one cycle before ``held`` and ``carry``.
        """
        where = segment_slice(segment)
        stored = where.stop - where.start
        bits = min(where.stop, EXACT_VALUE_BITS) - where.start
        new, written = (
            Signal(stored, reset_less=True, name=f"{name}{segment}") for name in ("new", "written"))
        addend = Signal(bits, reset_less=True, name=f"addend{segment}")

        # 1: the part of the term in this segment, and the other operand: 3 the sum of the previous
        # term, 2 the sum of the term before it, 1 the memory's output, 0 zero.
        part = (Mux(term.segment == segment, term.bits[:SEGMENT_BITS], 0)
                | Mux(term.segment == segment - 1, term.bits[SEGMENT_BITS:], 0))
        choice = Signal(2, reset_less=True, name=f"choice{segment}")
        m.d.sync += [
            choice.eq(Mux(control.clear, 0, Cat(
                control.again1 | ~control.again2, control.again1 | control.again2))),
            addend.eq(part[:bits] ^ term.negative.replicate(bits)),
        ]

        # 2: add.
        begin, total = Signal(stored), Signal(bits + 2)
        given = Value.cast(self.held)[where]
        m.d.comb += [
            begin.eq(Mux(choice[1], Mux(choice[0], new, written),
                         given & choice[0].replicate(stored))),
            # x + y + c as (2 x + c) - (2 ~y + 1): a carry chain uses its minuend directly, so the
            # selection of ``begin`` shares the LUT of the difference.
            total.eq(Cat(carry, addend) - Cat(Const(1, 1), ~begin[:bits])),
        ]
        sum_bits = total[1:bits + 1]
        if stored > bits:
            flags = Signal(stored - bits, reset_less=True)
            m.d.sync += flags.eq(Cat(term.plus, term.minus, term.other))
            sum_bits = Cat(sum_bits, begin[bits:] | flags)
        carried = Signal(reset_less=True, name=f"carry{segment + 1}")
        m.d.sync += [
            new.eq(sum_bits), carried.eq(~total[-1]), written.eq(new),
        ]
        m.d.comb += Value.cast(self.sum)[where].eq(new)
        return carried
