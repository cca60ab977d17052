"""Proof of a lane of exact sums, bounded: each sum is the plain sum of its terms.

A sum has 277 bits, a sign and room for 2^20 terms in the hardware, cut into segments of 54 bits; it
has nine bits here, three segments of four, the last of which holds the flags, too. A significand
has two bits. There are two sums; terms of one may follow each other at once, so that what is read
is older than what two terms before have left in registers. The place of a term is any.
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from rtl.float.exact_lane import ExactLane
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove

SEGMENT, VALUE, SIGNIFICAND, SUMS = 4, 9, 2, 2
EXACT = data.StructLayout({"value": VALUE, "plus": 1, "minus": 1, "other": 1})
SEGMENTS = -(-EXACT.size // SEGMENT)
PLACED = data.StructLayout({
    "bits": SIGNIFICAND + SEGMENT - 1, "segment": range(SEGMENTS), "negative": 1,
    "plus": 1, "minus": 1, "other": 1})


def segment_slice(segment: int) -> slice:
    return slice(SEGMENT * segment, min(SEGMENT * (segment + 1), EXACT.size))


def lane(*edits: tuple[str, str]) -> Bench:
    """Return a bench that adds a term to one of the sums, or none, in every cycle.

    The memory is one of a register at its output: what is written in a cycle is read in the next,
    and at the output another one later.
    """
    bench = Bench()
    m = bench.m
    placed = Signal(PLACED)
    shift, significand = bench.free(2, "shift"), bench.free(SIGNIFICAND, "significand")
    m.d.comb += [
        placed.bits.eq(significand << shift), placed.segment.eq(bench.free(2, "segment")),
        *(placed[name].eq(bench.free(name=name))
          for name in ("negative", "plus", "minus", "other"))]

    class AnyPlaced(Component):
        i: In(32)
        o: Out(PLACED)

        def elaborate(self, platform) -> Module:
            m = Module()
            m.d.comb += self.o.eq(placed)
            return m

    narrow = variant(
        ExactLane, *edits, ("held: In(EXACT)\n    sum: Out(EXACT)\n",
                            f"held: In({EXACT.size})\n    sum: Out({EXACT.size})\n"),
        EXACT_SEGMENTS=SEGMENTS, EXACT_VALUE_BITS=VALUE, SEGMENT_BITS=SEGMENT, PLACED=PLACED,
        ExactPlacer=AnyPlaced, segment_slice=segment_slice)
    m.submodules.dut = dut = narrow()
    valid, which, clear = (bench.free(name=name) for name in ("valid", "which", "clear"))
    # Of the terms before: whether they were added, and to which sum.
    steps = SEGMENTS + 3
    was = [(valid, which), *((Signal(name=f"valid{k}"), Signal(name=f"which{k}"))
                             for k in range(1, steps))]
    for before, after in pairwise(was):
        m.d.sync += [after[0].eq(before[0]), after[1].eq(before[1])]
    begun = Signal(SUMS)
    bench.assume(~valid | clear | begun.bit_select(which, 1), placed.segment < SEGMENTS)
    m.d.comb += Value.cast(dut.control).eq(Cat(clear, *(
        was[k][0] & (was[k][1] == which) for k in (1, 2))))

    # What the sums are: added at once, and compared when they come.
    sums = [Signal(EXACT, name=f"plain{k}") for k in range(SUMS)]
    old, new, term = Signal(EXACT), Signal(EXACT), Signal(VALUE)
    m.d.comb += [
        old.eq(Mux(clear, 0, Mux(which, sums[1], sums[0]))),
        term.eq(placed.bits << (placed.segment << 2)),
        new.value.eq(Mux(placed.negative, old.value - term, old.value + term)),
        *(new[name].eq(old[name] | placed[name]) for name in ("plus", "minus", "other"))]
    with m.If(valid):
        m.d.sync += begun.bit_select(which, 1).eq(1)
        for k, plain in enumerate(sums):
            with m.If(which == k):
                m.d.sync += plain.eq(new)
    expected = Value.cast(new)
    for step in range(1, 2 + SEGMENTS):
        later = Signal(EXACT.size, name=f"expected{step}")
        m.d.sync += later.eq(expected)
        expected = later
        if step >= 2:
            k = step - 2
            here, part = segment_slice(k), dut.sum[segment_slice(k)]
            bench.always(f"sum_{k}", ~was[step][0] | (part == expected[here]))
            # The memory of a segment: written now; read a cycle before it is added to.
            cells = [Signal(len(part), name=f"cell{k}_{n}") for n in range(SUMS)]
            read = Signal(len(part), name=f"read{k}")
            for n, cell in enumerate(cells):
                with m.If(was[step][0] & (was[step][1] == n)):
                    m.d.sync += cell.eq(part)
            m.d.sync += read.eq(Mux(was[k][1], cells[1], cells[0]))
            m.d.comb += dut.held[here].eq(read)
    return bench


DEPTH = 14


def test_exact_lane():
    verdict = prove(lane(), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("carry.eq(term.negative)", "carry.eq(0)", "sum_0"),
    ("carried.eq(~total[-1])", "carried.eq(total[-1])", "sum_1"),
    ("carried.eq(~total[-1])", "carried.eq(0)", "sum_1"),
    ("carry = self._segment(", "self._segment(", "sum_1"),
    ("control.again1 | ~control.again2, control", "control.again1, control", "sum_0"),
    ("control.again1 | control.again2)", "control.again1)", "sum_0"),
    ("Mux(choice[0], new, written)", "Mux(choice[0], written, new)", "sum_0"),
    ("Mux(choice[0], new, written)", "new", "sum_0"),
    ("choice.eq(Mux(control.clear, 0,", "choice.eq(Mux(0, 0,", "sum_0"),
    ("term.segment == segment - 1", "term.segment == segment", "sum_"),
    ("begin[bits:] | flags", "flags", "sum_2"),
    ("term.plus, term.minus, term.other", "term.minus, term.plus, term.other", "sum_2"),
    ("term, control = term_later, control_later", "term = term_later", "sum_1"),
], ids=["one-short", "carry-inverted", "no-carry", "first-carry", "that-of-before-last",
        "memory-too-old", "wrong-term", "always-the-last", "never-cleared", "rest-lost",
        "flags-lost", "flags-swapped", "control-of-another"])
def test_broken_exact_lane(old, new, what):
    verdict = prove(lane((old, new)), depth=DEPTH)
    assert any(name.startswith(what) for name in verdict.broken), verdict
