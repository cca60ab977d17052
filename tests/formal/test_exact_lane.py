"""Proof of a lane of exact sums, without bound: each sum equals the plain sum of its terms.

In the hardware a sum has 277 bits, a sign and room for 2^20 terms, in segments of 54 bits. Here it
has nine bits in three segments of four; the last one also holds the flags. A significand has two
bits. There are two sums. Terms of one sum may follow each other at once, so the value read is older
than the last two terms, which are in registers. The position of a term is free.

Induction needs an invariant: each register and each word of the memory is a part of the plain sums,
delayed by its stage; the carry into a segment is that of all lower segments.
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from rtl.float.exact_lane import ExactLane
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.prove import prove
from tests.mutants import variant

SEGMENT, VALUE, SIGNIFICAND, SUMS = 4, 9, 2, 2
EXACT = data.StructLayout({"value": VALUE, "plus": 1, "minus": 1, "other": 1})
SEGMENTS = -(-EXACT.size // SEGMENT)
_SHOWN = """        self.segments = [*getattr(self, "segments", []), dict(locals())]
        return carried
"""
PLACED = data.StructLayout({
    "bits": SIGNIFICAND + SEGMENT - 1, "segment": range(SEGMENTS), "negative": 1,
    "plus": 1, "minus": 1, "other": 1})


def segment_slice(segment: int) -> slice:
    return slice(SEGMENT * segment, min(SEGMENT * (segment + 1), EXACT.size))


class Past:
    """The terms of the last cycles, and the plain sums before and after each.

    Member ``new``: the sum with the term of that age in cycles.
    """

    def __init__(self, m: Module, was: list[tuple], clear: Value, placed: Signal, new: Value,
                 sums: list[Signal], begun: Signal):
        def ages(name: str, now, shape=None) -> list:
            values = [now]
            for age in range(1, len(was)):
                later = Signal(shape or len(now), name=f"{name}{age}")
                m.d.sync += later.eq(values[-1])
                values.append(later)
            return values

        self.was, self.new = was, ages("new", new)
        self.clear, self.placed = ages("clear", clear), ages("placed", placed, PLACED)
        # The sum before the term of an age, with all older terms.
        self.sums = [ages(f"sum{k}_", Value.cast(each)) for k, each in enumerate(sums)]
        self.begun = ages("begun", begun)

    def _sum(self, number: Value, age: int) -> Value:
        """Return a sum as it was before the term of an age."""
        return Mux(number, self.sums[1][age], self.sums[0][age])

    def _begin(self, age: int) -> Value:
        """Return the other operand of the addition of the term of an age."""
        return Mux(self.clear[age], 0, self._sum(self.was[age][1], age))

    def follows(self, bench: Bench) -> None:
        """State that the sums of two cycles differ by the term between."""
        for age, (valid, which) in list(enumerate(self.was))[1:]:
            placed, begun = self.placed[age], self.begun[age]
            bench.always(f"new_{age}", ~valid | (
                self.new[age] == added(self._begin(age), placed)))
            bench.always(f"begins_{age}", ~valid | (
                self.clear[age] | begun.bit_select(which, 1)))
            bench.always(f"placed_{age}", placed.segment < SEGMENTS)
            for n, sums in enumerate(self.sums):
                here = valid & (which == n)
                bench.always(f"plain_{age}_{n}", sums[age - 1] == Mux(
                    here, self.new[age], sums[age]))
                bench.always(f"begun_{age}_{n}", self.begun[age - 1][n] == (begun[n] | here))

    def of_segment(self, bench: Bench, k: int, of: dict, cells: list[Signal], read: Value) -> None:
        """State the values of the registers ``of`` a segment, and of its words in the memory."""
        here, age, low = segment_slice(k), k + 1, SEGMENT * k
        (valid, which), placed = self.was[age], self.placed[age]
        bench.always(f"term_{k}", (Value.cast(of["term"]) == Value.cast(self.placed[k])) & (
            Value.cast(of["control"]) == Cat(self.clear[k], *(
                each[0] & (each[1] == self.was[k][1]) for each in self.was[k + 1:k + 3]))))
        newest, last = (each[0] & (each[1] == which) for each in self.was[age + 1:age + 3])
        term = term_of(placed) ^ placed.negative.replicate(VALUE)
        bench.always(f"choice_{k}", ~valid | (of["choice"] == Mux(
            self.clear[age], 0, Mux(newest, 3, Mux(last, 2, 1)))))
        bench.always(f"addend_{k}", ~valid | (
            of["addend"] == term[here.start:min(here.stop, VALUE)]))
        bench.always(f"carry_{k}", ~valid | (of["carry"] == (
            self._begin(age)[:low] + term[:low] + placed.negative).bit_select(low, 1)))
        if "flags" in of:
            bench.always(f"flags_{k}", ~valid | (
                of["flags"] == Cat(placed.plus, placed.minus, placed.other)))
        bench.always(f"written_{k}", ~self.was[k + 3][0] | (
            of["written"] == self.new[k + 3][here]))
        bench.always(f"read_{k}", ~self.begun[k + 3].bit_select(which, 1) | (
            read == self._sum(which, k + 3)[here]))
        for n, cell in enumerate(cells):
            bench.always(f"cell_{k}_{n}", ~self.begun[k + 2][n] | (
                cell == self.sums[n][k + 2][here]))


def term_of(placed: data.View) -> Value:
    """Return the term at a position, without its sign."""
    return Value.cast((placed.bits << (placed.segment << 2))[:VALUE])


def added(old: Value, placed: data.View) -> Value:
    """Return the sum with the term."""
    term, value = term_of(placed), old[:VALUE]
    return Value.cast(Cat(Mux(placed.negative, value - term, value + term)[:VALUE],
                          old[VALUE:] | Cat(placed.plus, placed.minus, placed.other)))


def lane(*edits: tuple[str, str], invariant: bool = False) -> Bench:
    """Return a bench that adds a term to one of the sums, or no term, in every cycle.

    The memory has a register at its output: a write in a cycle is read in the next one, and output
    one more cycle later. ``invariant``: also state the invariant for induction.
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
        ExactLane, *edits, ("        return carried\n", _SHOWN), (
            "held: In(EXACT)\n    sum: Out(EXACT)\n",
            f"held: In({EXACT.size})\n    sum: Out({EXACT.size})\n"),
        EXACT_SEGMENTS=SEGMENTS, EXACT_VALUE_BITS=VALUE, SEGMENT_BITS=SEGMENT, PLACED=PLACED,
        ExactPlacer=AnyPlaced, segment_slice=segment_slice)
    dut = narrow()
    dut._MustUse__silence = True  # elaborated here, because statements refer to its registers
    m.submodules.dut = dut.elaborate(None)
    valid, which, clear = (bench.free(name=name) for name in ("valid", "which", "clear"))
    # For earlier terms: whether they were added, and to which sum.
    steps = SEGMENTS + 3
    was = [(valid, which), *((Signal(name=f"valid{k}"), Signal(name=f"which{k}"))
                             for k in range(1, steps))]
    for before, after in pairwise(was):
        m.d.sync += [after[0].eq(before[0]), after[1].eq(before[1])]
    begun = Signal(SUMS)
    bench.assume(~valid | clear | begun.bit_select(which, 1), placed.segment < SEGMENTS)
    m.d.comb += Value.cast(dut.control).eq(Cat(clear, *(
        was[k][0] & (was[k][1] == which) for k in (1, 2))))

    # The plain sums: added at once, and compared when the lane outputs them.
    sums = [Signal(EXACT, name=f"plain{k}") for k in range(SUMS)]
    new = Signal(EXACT)
    m.d.comb += Value.cast(new).eq(added(Mux(clear, 0, Mux(which, sums[1], sums[0])), placed))
    with m.If(valid):
        m.d.sync += begun.bit_select(which, 1).eq(1)
        for k, plain in enumerate(sums):
            with m.If(which == k):
                m.d.sync += plain.eq(new)
    past = Past(m, was, clear, placed, Value.cast(new), sums, begun)
    for k in range(SEGMENTS):
        step, here = k + 2, segment_slice(k)
        part = dut.sum[here]
        bench.always(f"sum_{k}", ~was[step][0] | (part == past.new[step][here]))
        # The memory of a segment: written in this cycle; read one cycle before the addition.
        cells = [Signal(len(part), name=f"cell{k}_{n}") for n in range(SUMS)]
        read = Signal(len(part), name=f"read{k}")
        for n, cell in enumerate(cells):
            with m.If(was[step][0] & (was[step][1] == n)):
                m.d.sync += cell.eq(part)
        m.d.sync += read.eq(Mux(was[k][1], cells[1], cells[0]))
        m.d.comb += dut.held[here].eq(read)
        if invariant:
            past.of_segment(bench, k, dut.segments[k], cells, read)
    if invariant:
        past.follows(bench)
    return bench

DEPTH = 14


def test_exact_lane():
    verdict = by_induction(lane(invariant=True))
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
    ("written.eq(new)", "written.eq(sum_bits)", "sum_0"),
    ("term_later.eq(term)", "term_later.eq(placer.o)", "sum_2"),
    ("choice.eq(Mux(control.clear, 0,", "choice.eq(Mux(0, 0,", "sum_0"),
    ("term.segment == segment - 1", "term.segment == segment", "sum_"),
    ("begin[bits:] | flags", "flags", "sum_2"),
    ("term.plus, term.minus, term.other", "term.minus, term.plus, term.other", "sum_2"),
    ("term, control = term_later, control_later", "term = term_later", "sum_1"),
], ids=["one-short", "carry-inverted", "no-carry", "first-carry", "that-of-before-last",
        "memory-too-old", "wrong-term", "always-the-last", "same-again", "term-of-another",
        "never-cleared", "rest-lost", "flags-lost", "flags-swapped", "control-of-another"])
def test_broken_exact_lane(old, new, what):
    verdict = prove(lane((old, new)), depth=DEPTH)
    assert any(name.startswith(what) for name in verdict.broken), verdict
