"""Proofs of bags of gradients: of the host, each passed bag leaves whole and once, and each beat
returns its credit once; of other nodes, each bag goes to its own output.

Bags of any length arrive at any time, and outputs stall at any time. A head is at any word of a
beat; the bits of the other words differ from its own. The skid buffers are wires
(``test_streams``). A substitute for the check of the host's bags outputs any bags and faults, and
frees each beat that it took (``test_bag_check``).
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component

from rtl.bags.check import BagCheck
from rtl.bags.gradients import BagGradients, GradientLists
from rtl.bags.layouts import OutgoingSegment
from rtl.config import preset
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, GradientHead
from tests.formal.bench import Bench
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

NODES, BEATS, FAULTS, BITS = 2, 2, 2, 4
DEPTH = 12
"""Cycles searched for the fault of a mutant."""
_ITEM = data.StructLayout({
    "first": 3, "tail": 1, "node": 1, "step": 1, "gradient": 1, "wide": 1, "keys": 2})


def words(bench: Bench, item: data.View, first: Value) -> list[Signal]:
    """Return the words of a beat, of which word ``first`` is a head."""
    made = [Signal(GradientHead, name=f"word{k}") for k in range(RECORDS_PER_BEAT)]
    for k, word in enumerate(made):
        here = first == k
        bench.m.d.comb += [
            word.gradient.eq(item.gradient ^ ~here), word.wide.eq(item.wide ^ ~here),
            word.keys.eq(Mux(here, item.keys, 0)), word.landing[0].eq(item.step ^ ~here)]
    return made


class Bags:
    """A source of whole bags at the stream ``port`` of OwnedSegments.

    Members
    -------
    item, head: the present item, and the one at the head of its bag.
    came: it is taken.
    words: words of the bag.
    """

    def __init__(self, bench: Bench, port, gradient_words: Value):
        m, source = bench.m, stream.Signature(_ITEM).create()
        self.item, self.inside, kept = source.payload, Signal(), Signal(_ITEM)
        self.head = Signal(_ITEM)
        self.came = bench.source(source)
        item, segment = self.item, port.payload.segment
        m.d.comb += [
            self.head.eq(Mux(self.inside, kept, item)), port.valid.eq(source.valid),
            source.ready.eq(port.ready), segment.head.eq(~self.inside),
            segment.first.eq(item.first), segment.size.eq(1), segment.tail.eq(item.tail),
            segment.keys.eq(item.keys), port.payload.node.eq(self.head.node),
            port.payload.step.eq(self.head.step), segment.words.eq(Cat(words(
                bench, item, item.first)))]
        with m.If(self.came):
            m.d.sync += [self.inside.eq(~item.tail), kept.eq(self.head)]
        rows = Mux(self.head.wide, self.head.keys, (self.head.keys + 1) >> 1)
        self.words = Signal(5)
        m.d.comb += self.words.eq(1 + rows + gradient_words)


def lists(*edits: tuple[str, str]) -> Bench:
    """Return a bench of bags of other nodes."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(GradientLists, *edits, SkidBuffer=Wires)()
    gradient_words = bench.constant(3, "gradient_words")
    m.d.comb += dut.gradient_words.eq(gradient_words)
    bags = Bags(bench, dut.i, gradient_words)
    item, shown = dut.i.payload, dut.o.payload
    left = bench.sink(dut.o, "o", shown.segment.first)
    onwards = bench.sink(dut.bags, "bags", dut.bags.payload.segment.first)
    to_lists = bags.came & bags.head.gradient
    bench.always("lists", left == to_lists)
    bench.always("bags", onwards == (bags.came & ~bags.head.gradient))
    bench.always("itself", ~onwards | (Cat(dut.bags.payload) == Cat(item)))

    # The node is in the head, and nothing else changes.
    expected = Signal(OutgoingSegment)
    m.d.comb += [expected.segment.eq(item.segment), expected.step.eq(item.step),
                 expected.words.eq(bags.words)]
    for k in range(RECORDS_PER_BEAT):
        with m.If(~bags.inside & (item.segment.first == k)):
            m.d.comb += data.View(GradientHead, expected.segment.words.word_select(
                k, RECORD_BITS)).source.eq(bags.head.node)
    bench.always("list", ~left | (Cat(shown) == Cat(expected)))
    ready = Mux(bags.head.gradient, dut.o.ready, dut.bags.ready)
    bench.always("moves", ~(dut.i.valid & ready) | bags.came)
    bench.always("idle", ~dut.idle | ~dut.i.valid)
    return bench


def any_check(bench: Bench) -> type:
    """Return a class with the ports of a check that takes and frees beats at any time.

    Members: ``held``, beats that it has to free; a bench drives ``o`` and ``fault``.
    """
    takes, frees = bench.free(name="takes"), bench.free(name="frees")

    class AnyCheck(Component):
        def __init__(self, config, *, outward: bool):
            assert outward
            alike = BagCheck(preset("tiny").with_fields(owner_bags=16, training=True), outward=True)
            alike._MustUse__silence = True  # type: ignore[attr-defined]
            super().__init__(alike.signature)
            self.held = Signal(2)

        def elaborate(self, platform) -> Module:
            m, freed = Module(), frees & (self.held != 0)
            m.d.comb += [self.i.ready.eq(takes & ~self.held.all()), self.freed.valid.eq(freed),
                         self.idle.eq(self.held == 0)]
            m.d.sync += self.held.eq(self.held + (self.i.valid & self.i.ready) - freed)
            return m

    return AnyCheck


def host(bench: Bench, *edits: tuple[str, str]):
    """Add the block for the host's bags to ``bench``; return it and its parts."""
    dut = variant(
        BagGradients, *edits, BagCheck=any_check(bench), StreamFIFO=TimedFIFO, SkidBuffer=Wires,
        CREDIT_BITS=BITS, _FAULTS=FAULTS)(SimpleNamespace(nodes=NODES, gradient_beats=BEATS))
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    bench.m.submodules.dut = dut.elaborate(None)
    return dut, bench.m.submodules.dut.submodules


def beats(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the host's beats, and of the faults of their bags."""
    bench = Bench()
    m, (dut, parts) = bench.m, host(bench, *edits)
    check, fifo, faults = parts.check, parts.fifo, parts.faults

    # A beat is dropped only if it has no room, and a bag does not continue behind it.
    beat, kept = dut.i.payload, check.i.payload
    m.d.comb += [dut.i.valid.eq(bench.free(name="beat")), beat.last.eq(bench.free(name="last")),
                 beat.data[0].eq(bench.free(name="bit"))]
    fresh, dropped = Signal(init=1), dut.i.valid & ~fifo.i.ready
    with m.If(dut.i.valid):
        m.d.sync += fresh.eq(beat.last | dropped)
    inside = bench.in_order(
        "beats", dut.i.valid & fifo.i.ready, Cat(beat.data[0], beat.last, fresh),
        check.i.valid & check.i.ready, Cat(kept.data[0], kept.last, kept.fresh), BEATS + 1)
    bench.always("taken", dut.i.ready)
    bench.always("room", ~dropped | (inside >= BEATS))

    # Each beat counts as consumed once: beats that came, minus those inside.
    came, late, owed = Signal(BITS), Signal(2), Signal(BITS)
    m.d.sync += [came.eq(came + dut.i.valid), late.eq(check.freed.valid + dropped)]
    m.d.comb += owed.eq(inside + check.held + late)
    bench.always("consumed", (dut.consumed + owed)[:BITS] == came)

    # Faults are told once, in order, while there is room.
    step, status = bench.free(name="step"), bench.free(name="status")
    m.d.comb += [check.fault.valid.eq(bench.free(name="fault")), check.fault.step.eq(step),
                 check.fault.status.eq(status)]
    told = dut.refused.payload
    tells = bench.sink(dut.refused, "refused", told.status[0])
    waiting = bench.in_order("faults", check.fault.valid & faults.i.ready, Cat(status, step), tells,
                             Cat(told.status[0], told.step[0]), FAULTS + 1)
    bench.always("has_room", faults.i.ready | (waiting >= FAULTS))
    bench.always("idle", ~dut.idle | ((owed == 0) & (waiting == 0)))
    return bench


def leaving(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the host's bags that passed; nodes fail and rejoin at any time."""
    bench = Bench()
    m, (dut, parts) = bench.m, host(bench, *edits)
    gradient_words, failed = bench.constant(3, "gradient_words"), bench.free(NODES, "failed")
    m.d.comb += [dut.gradient_words.eq(gradient_words), dut.lost.eq(failed)]
    passed, out = parts.check.o, dut.o.payload
    bags = Bags(bench, passed, gradient_words)
    # The skid buffer may see a head that is dropped before it has room.
    m.d.comb += dut.o.ready.eq(bench.free(name="ready"))
    left, passes, gone = dut.o.valid & dut.o.ready, Signal(), (failed >> bags.head.node)[0]
    begins = bags.came & ~bags.inside
    with m.If(begins):
        m.d.sync += passes.eq(left)
    bench.always("once", ~left | bags.came)
    bench.always("whole", ~(bags.came & bags.inside) | (left == passes))
    bench.always("dropped", ~begins | (left == ~gone))
    bench.always("itself", ~left | (
        (Cat(out.segment) == Cat(passed.payload.segment)) & (out.words == bags.words)
        & (out.destination == bags.head.node) & (out.step == bags.head.step)))
    bench.always("moves", ~(passed.valid & dut.o.ready) | bags.came)
    bench.always("drains", ~(passed.valid & Mux(bags.inside, ~passes, gone)) | bags.came)
    bench.always("idle", ~dut.idle | ~passed.valid)
    return bench


@pytest.mark.parametrize("made", [lists, beats, leaving])
def test_bag_gradients(made):
    verdict = prove(made())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"lists", "bags"}, "head.gradient, before", "head.gradient, 0"),
    ({"lists", "bags"}, "mine.eq(Mux(segment.head, head.gradient, before))",
     "mine.eq(head.gradient)"),
    ({"moves", "lists"}, "Mux(mine, output.i.ready, onwards.i.ready)",
     "output.i.ready & onwards.i.ready"),
    ({"list"}, "m.If(segment.head & (segment.first == k))", "m.If(segment.first == k)"),
    ({"list"}, "(segment.first == k)", "(k == 0)"),
    ({"list"}, "source.eq(item.node)", "source.eq(0)"),
    ({"list"}, "gradient_bag_words(head, gradient_words), kept",
     "gradient_bag_words(head, gradient_words), 0"),
    ({"bags"}, "onwards.i.valid.eq(source.o.valid & ~mine)", "onwards.i.valid.eq(source.o.valid)"),
], ids=["in-part", "each-segment", "blocked", "any-word", "first-word", "no-node",
        "words-of-a-segment", "twice"])
def test_broken_gradient_lists(wrong, old, new):
    verdict = prove(lists((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"beats_in_order"}, "fresh.eq(dropped | beat.last)", "fresh.eq(beat.last)"),
    ({"beats_in_order"}, "m.If(self.i.valid):", "m.If(1):"),
    ({"consumed"}, "gone.eq(check.freed.valid + dropped)", "gone.eq(check.freed.valid | dropped)"),
    ({"consumed"}, "gone.eq(check.freed.valid + dropped)", "gone.eq(check.freed.valid)"),
    ({"faults_in_order"}, "payload.status.eq(check.fault.status)", "payload.status.eq(0)"),
    ({"idle"}, "& ~gone.any()", ""),
    ({"taken"}, "self.i.ready.eq(1)", "self.i.ready.eq(fifo.i.ready)"),
], ids=["cut-bag", "any-cycle", "one-of-two", "dropped-beats", "other-fault", "idle-too-soon",
        "behind-bags-before"])
def test_broken_beats(wrong, old, new):
    verdict = prove(beats((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"whole"}, "self.lost.bit_select(item.node, 1), drains",
     "self.lost.bit_select(item.node, 1), 0"),
    ({"whole"}, "Mux(item.segment.head, self.lost.bit_select(item.node, 1), drains)",
     "self.lost.bit_select(item.node, 1)"),
    ({"drains"}, "source.o.ready.eq(output.i.ready | gone)", "source.o.ready.eq(output.i.ready)"),
    ({"itself"}, "destination.eq(item.node)", "destination.eq(0)"),
    ({"idle"}, "& ~leaving", ""),
], ids=["in-part", "each-segment", "blocked", "one-owner", "idle-inside"])
def test_broken_leaving(wrong, old, new):
    verdict = prove(leaving((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
