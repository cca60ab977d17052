"""Proof of the unpacker of bags: each item of a kept beat leaves once, in order; a packet with a
dropped beat ends there; and each gap is reported once, between the items before and behind it.

Beats of packets of any length arrive at any time, and the output stalls at any time. The buffer has
two beats, in proofs of mutants one; counts of credit have three bits. A substitute for the splitter
(``test_bag_splitter``) has room for a beat, and splits it into one or two items.
"""

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data

from rtl.bags.splitter import SegmentSplit
from rtl.bags.unpacker import BagUnpacker
from rtl.stream import StreamFIFO
from tests.formal.bench import Bench
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.shown import LOCALS
from tests.mutants import variant

BITS, INSIDE = 3, 4
"""Bits of a credit; most beats inside."""
DEPTH = 12
"""Cycles searched for the fault of a mutant."""
_BEAT = data.StructLayout({"bit": 1, "two": 1, "step": 1, "last": 1, "fresh": 1})


class Split(SegmentSplit):
    """A splitter of beats that have two items where their bit 1 is set; a marker has one."""

    def elaborate(self, platform) -> Module:
        m = Module()
        beat, held, second = Signal(self.i.payload.shape()), Signal(), Signal()
        segment, more, ends = self.o.payload.segment, Signal(), Signal()
        m.d.comb += [
            more.eq(beat.data[1] & ~beat.user.marker & ~second),
            ends.eq(held & self.o.ready & ~more), self.i.ready.eq(~held | ends),
            self.o.valid.eq(held), segment.words.eq(beat.data), segment.first.eq(second),
            segment.size.eq(beat.records), segment.tail.eq(beat.last), segment.head.eq(beat.fresh),
            self.o.payload.beat_last.eq(~more), self.o.payload.user.eq(beat.user),
            self.idle.eq(~held)]
        with m.If(held & self.o.ready):
            m.d.sync += second.eq(more)
        with m.If(self.i.ready):
            m.d.sync += [held.eq(self.i.valid), beat.eq(self.i.payload)]
        return m


class OneFIFO(StreamFIFO):
    """A FIFO of one place."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += [self.i.ready.eq(~self.o.valid | self.o.ready), self.idle.eq(~self.o.valid)]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        return m


def unpacked(*edits: tuple[str, str], fifo: type = TimedFIFO, beats: int = 2) -> Bench:
    """Return a bench that follows beats and gaps from the input to the items."""
    bench = Bench()
    m = bench.m
    shown = "        return m\n", f"        {LOCALS.format('inner')}return m\n"
    dut = variant(BagUnpacker, *edits, shown, SegmentSplit=Split, StreamFIFO=fifo,
                  CREDIT_BITS=BITS)(2, 16)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    parts = m.submodules.dut.submodules
    beat, item, came = Signal(_BEAT), dut.o.payload, dut.i.valid
    m.d.comb += [
        came.eq(bench.free(name="comes")), Cat(beat.bit, beat.two, beat.step, beat.last).eq(
            bench.free(4, "beat")),
        dut.i.payload.data.eq(Cat(beat.bit, beat.two)), dut.i.payload.step.eq(beat.step),
        dut.i.payload.last.eq(beat.last), dut.i.payload.records.eq(1 + beat.bit)]

    # A beat is dropped if there is no room, or if it follows a dropped one in its packet.
    torn, missing, kept = Signal(), Signal(), Signal()
    first = dut.dropped & ~torn
    m.d.comb += [kept.eq(came & ~dut.dropped), beat.fresh.eq(missing)]
    with m.If(came):
        m.d.sync += [torn.eq(dut.dropped & ~beat.last), missing.eq(dut.dropped)]
    bench.always("taken", dut.i.ready)
    bench.always("torn", ~came | ~torn | dut.dropped)
    bench.always("drops", ~dut.dropped | came)

    # The items of kept beats leave in order; only the first of a beat may report a gap.
    left = bench.sink(dut.o, "o", Cat(item.segment.words[:2], item.segment.first, item.user))
    marker = left & item.user.marker
    ends = left & item.beat_last & ~item.user.marker
    second = Signal()
    found = Signal(_BEAT)
    m.d.comb += found.eq(Cat(item.segment.words[:2], item.user.step[0], item.segment.tail,
                             item.segment.head))
    inside = bench.in_order("beats", kept, Cat(beat), ends, Cat(found), INSIDE)
    with m.If(left):
        m.d.sync += second.eq(~item.beat_last)
    bench.always("once", ~left | (item.segment.first == second))
    bench.always("size", ~left | item.user.marker | (item.segment.size == 1 + found.bit))
    bench.always("first_only", ~left | ~second | ~item.user.gap)
    bench.always("room", ~first | (inside >= beats))

    # Each gap is reported behind the beats before it, and before all later ones.
    waiting, ahead = Signal(), Signal(range(INSIDE + 2))
    with m.If(waiting):
        with m.If(ends):
            m.d.sync += ahead.eq(ahead - 1)
        with m.If(left & item.user.gap & (ahead == 0)):
            m.d.sync += waiting.eq(0)
    with m.Elif(first & bench.free(name="pick")):
        m.d.sync += [waiting.eq(1), ahead.eq(inside - ends)]
    bench.always("reported", ~(waiting & left & (ahead == 0)) | second | item.user.gap)

    # A report is of a gap that was not reported before.
    owed, step = Signal(), Signal()
    moves, stored = dut.inner["move"], parts.fifo.i
    with_gap = stored.valid & stored.ready & stored.payload.user.gap
    reports = moves | with_gap
    with m.If(first | reports):
        m.d.sync += owed.eq(first)
    with m.If(dut.dropped):
        m.d.sync += step.eq(beat.step)
    bench.always("of_a_gap", ~reports | (owed & ~(moves & with_gap)))
    bench.always("behind", ~left | item.user.marker | ~item.user.gap | item.segment.head)
    markers = bench.in_order("markers", moves, step, marker, item.user.step[0], 3)

    came_all = Signal(BITS)
    m.d.sync += came_all.eq(came_all + kept)
    bench.always("consumed", (dut.consumed + inside)[:BITS] == came_all)
    bench.always("idle", ~dut.idle | ((inside == 0) & (markers == 0) & ~owed))
    return bench


def test_bag_unpacker():
    verdict = prove(unpacked())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"torn", "beats_in_order"}, "self.i.valid & (torn | ~fifo.i.ready)",
     "self.i.valid & ~fifo.i.ready"),
    ({"torn"}, "torn.eq(self.dropped & ~beat.last)", "torn.eq(0)"),
    ({"room"}, "torn.eq(self.dropped & ~beat.last)", "torn.eq(self.dropped)"),
    ({"of_a_gap", "beats_in_order"}, "fifo.i.valid.eq(self.i.valid & ~torn)",
     "fifo.i.valid.eq(self.i.valid)"),
    ({"beats_in_order"}, "fifo.i.payload.fresh.eq(broken)", "fifo.i.payload.fresh.eq(gap)"),
    ({"beats_in_order"}, "broken.eq(self.dropped)", "broken.eq(torn)"),
    ({"beats_in_order", "idle"}, "fifo.o.ready.eq(split.i.ready & ~marker)",
     "fifo.o.ready.eq(split.i.ready)"),
    ({"reported", "idle"}, "move.eq(gap & fifo.idle & ~marker)", "move.eq(gap & ~marker)"),
    ({"reported", "idle"}, "gap.eq(self.dropped)", "gap.eq(self.dropped & fifo.idle)"),
    ({"of_a_gap"}, "user.gap.eq(gap & ~move)", "user.gap.eq(gap)"),
    ({"of_a_gap"}, "[marker.eq(1), gap.eq(0), marked.eq(lost_step)]",
     "[marker.eq(1), marked.eq(lost_step)]"),
    ({"markers_in_order"}, "into.user.step.eq(marked)", "into.user.step.eq(lost_step)"),
    ({"markers_none_invented", "markers_bounded"}, "m.d.sync += marker.eq(0)",
     "m.d.sync += marker.eq(marker)"),
    ({"first_only"}, "found.user.gap & (found.segment.first == 0)", "found.user.gap"),
    ({"consumed"}, "found.beat_last & ~found.user.marker", "found.beat_last"),
    ({"consumed"}, "self.o.ready & found.beat_last", "self.o.ready"),
    ({"idle"}, "fifo.idle & split.idle & ~gap & ~marker", "fifo.idle & split.idle & ~gap"),
    ({"idle"}, "fifo.idle & split.idle & ~gap & ~marker", "fifo.idle & ~gap & ~marker"),
], ids=["rest-kept", "never-torn", "next-packet", "stored", "behind-a-marker", "late",
        "beat-under-marker", "before-beats", "gap-lost", "marker-too", "gap-stays", "another-gap",
        "marker-stays", "each-item", "marker-counts", "each-item-counts", "marker-inside",
        "beats-inside"])
def test_broken_bag_unpacker(wrong, old, new):
    verdict = prove(unpacked((old, new), fifo=OneFIFO, beats=1), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
