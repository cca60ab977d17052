"""Proof of lost bags: a bag leaves whole or not at all, and is answered with zeros if its owner has
failed.

There are two nodes and two ids; the vector of a bag has one or two beats. Bags of any length and
vectors of the network arrive at any time, nodes fail and rejoin at any time, and both outputs stall
at any time. The solver picks a bag that is kept, and a bag that passes.
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.bags.layouts import OutgoingSegment
from rtl.bags.lost import LostBags
from rtl.cache.lost_misses import LostMisses
from rtl.formats import RECORD_BITS, BagHead, PeerBeat
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

NODES, IDS, BEATS = 2, 2, 2
LANDING = slice(BagHead["landing"].offset, RECORD_BITS)
SIZES = SimpleNamespace(nodes=NODES, owner_bags=IDS, vector_beats=BEATS)
DEPTH = 24
"""Cycles searched for the fault of a mutant."""
SETTLED = 2
"""Cycles between a request and its vector, at least (``AnswerCheck``)."""


def lost(*edits: tuple[str, str], misses: tuple[tuple[str, str], ...] = ()) -> Bench:
    """Return a bench with ``edits`` of the block, or of the ``misses`` inside it."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        LostBags, *edits, NicConfig=SimpleNamespace, LostMisses=variant(
            LostMisses, *misses, NicConfig=SimpleNamespace))(SIZES)
    failed = bench.free(NODES, "failed")
    m.d.comb += dut.lost.eq(failed)

    # A bag keeps its destination. Its landing is an id and a lap.
    item, inside, kept_to = Signal(OutgoingSegment), Signal(), Signal()
    to, landing, tail = bench.free(name="to"), bench.free(2, "landing"), bench.free(name="tail")
    # The landing determines the size, for a simple statement of the vector's end.
    m.d.comb += item.final_beat.eq(landing[1])
    m.d.comb += [
        item.segment.size.eq(1), item.segment.head.eq(~inside), item.segment.tail.eq(tail),
        item.destination.eq(Mux(inside, kept_to, to)),
        item.segment.words[LANDING.start:LANDING.start + 2].eq(landing)]
    came = bench.source(dut.bags, Cat(item))
    bag, out = dut.bags.payload, dut.o.payload
    m.d.comb += dut.o.ready.eq(bench.free(name="ready"))
    left = dut.o.valid & dut.o.ready
    head, tag, node = bag.segment.head, bag.segment.words[LANDING], bag.destination[0]
    passing, keeps, passes = Signal(), came & head & ~left, came & head & left
    with m.If(came):
        m.d.sync += [inside.eq(~bag.segment.tail), kept_to.eq(node)]
        with m.If(head):
            m.d.sync += passing.eq(left)
    bench.always("itself", ~left | (came & (Cat(out) == Cat(bag))))
    bench.always("whole", ~(came & ~head) | (left == passing))
    bench.always("drained", ~(dut.bags.valid & ~head & ~passing) | dut.bags.ready)

    # A vector of the network leaves as it is; a lost one is zeros.
    vector, second = Signal(PeerBeat), Signal()
    m.d.comb += [vector.tag.eq(bench.free(2, "of")), vector.data.eq(bench.free(name="bit")),
                 vector.source.eq(bench.free(name="source")), vector.last.eq(second)]
    comes = bench.source(dut.vectors, Cat(vector))
    fill = dut.fills.payload
    m.d.comb += dut.fills.ready.eq(bench.free(name="takes"))
    gives, middle, zeros = dut.fills.valid & dut.fills.ready, Signal(), Signal()
    ends = gives & fill.lost & fill.last
    with m.If(comes):
        m.d.sync += second.eq(~second)
    with m.If(gives):
        m.d.sync += [middle.eq(~fill.last), zeros.eq(fill.lost)]
    bench.always("passes", comes == (gives & ~fill.lost))
    bench.always("unchanged", ~comes | (Cat(fill) == Cat(dut.vectors.payload)))
    bench.always("zeros", ~(gives & fill.lost) | (
        (fill.data == 0) & (fill.last == (middle | ~fill.tag[1]))))
    bench.always("not_mixed", ~(gives & middle) | (fill.lost == zeros))

    # A bag that is kept is answered by the next zeros, soon.
    kept, settled, asked = Signal(), Signal(range(SETTLED + 1)), Signal(3)
    m.d.sync += settled.eq(Mux(settled == SETTLED, settled, settled + 1))
    with m.If(keeps):
        m.d.sync += [kept.eq(1), settled.eq(1), asked.eq(Cat(tag[:2], node))]
    with m.Elif(ends):
        m.d.sync += kept.eq(0)
    bench.always("one_at_a_time", ~(kept & keeps) | ends)
    bench.always("its_zeros", ~(kept & gives & fill.lost) | (
        (Cat(fill.tag[:2], fill.source[0]) == asked) & (settled == SETTLED)))
    free = dut.fills.ready & ~dut.vectors.valid & ~(middle & ~zeros)
    bench.within("answered", SETTLED + BEATS, kept & free, ends)

    # A bag that has passed is answered after its node fails, unless its id is used again.
    waits, given, owed = Signal(), Signal(), Signal(3)
    again = (keeps | passes) & (tag[0] == owed[0])
    with m.If(passes & bench.free(name="picks") & ~waits):
        m.d.sync += [waits.eq(1), given.eq(0), owed.eq(Cat(tag[:2], node))]
    with m.Elif(again):
        m.d.sync += waits.eq(0)
    with m.If(waits & ends & (Cat(fill.tag[:2], fill.source[0]) == owed)):
        m.d.sync += given.eq(1)
    bench.always("given", ~(waits & dut.idle & (failed >> owed[2])[0]) | given)
    ever = Signal(NODES)
    m.d.sync += ever.eq(ever | failed)
    bench.always("only_failed", (~keeps | (ever >> node)[0]) & (
        ~(gives & fill.lost) | (ever >> fill.source[0])[0]))
    return bench


@pytest.mark.thorough
def test_lost_bags():
    verdict = prove(lost())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"whole"}, "drains.eq(~heads.o.valid)", "drains.eq(0)"),
    ({"whole"}, "self.bags.valid & ~drains", "self.bags.valid"),
    ({"drained"}, "self.o.ready | drains", "self.o.ready"),
    ({"one_at_a_time", "whole"}, "self.bags.valid & segment.head)", "self.bags.valid)"),
    ({"its_zeros", "only_failed"}, "question.destination.eq(bag.destination)",
     "question.destination.eq(1)"),
], ids=["sent-in-part", "drained-in-part", "blocked", "asked-twice", "of-another-node"])
def test_broken_lost_bags(wrong, old, new):
    verdict = prove(lost((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"given"}, "passes | ~swept", "~swept"),
    ({"given"}, "again.eq(1)", "again.eq(0)"),
    ({"given"}, "~answers | loads", "1"),
    ({"its_zeros"}, "held.eq(question), due.eq(_SETTLED)", "held.eq(question), due.eq(0)"),
    ({"not_mixed", "zeros"}, "~self.vectors.valid & ~within", "~self.vectors.valid"),
], ids=["forgotten", "second-failure", "passed-over", "too-early", "cut"])
def test_broken_lost_misses(wrong, old, new):
    verdict = prove(lost(misses=((old, new),)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
