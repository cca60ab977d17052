"""Proof of the word ring: a bag is equal exactly if each of its rows and weights equals what was
last stored at the place that it is compared with.

There are four lanes of two words, and words of two bits, one for each half. Bags of one to seven
keys, wide or weighted or both, arrive in segments of any sizes, from any word of a beat, at any
time; each bag is stored and compared at any places. The bench finds the used halves of a bag from
its number of keys and the words before, and keeps the words at all places.
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal, Value
from amaranth.lib import data

from rtl.bags.word_ring import WordRing
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.mutants import variant

LANES, WORDS = 4, 8
LATENCY = WordRing.LATENCY["tail", "its verdict"]
DEPTH = 12
"""Cycles searched for the fault of a mutant."""
_WORD = data.StructLayout({"low": 1, "high": 1})
_SEGMENT = data.StructLayout({
    "words": data.ArrayLayout(_WORD, LANES), "first": range(LANES), "size": range(LANES + 1),
    "head": 1, "tail": 1, "keys": 3})
_BAG = data.StructLayout({"keys": 3, "wide": 1, "weighted": 1, "compares": 1, "writes": 1,
                          "old": range(WORDS), "new": range(WORDS)})
_LANE = data.StructLayout({
    "here": 1, "high": 1, "writes": 1, "junk": 1, "old": range(WORDS), "new": range(WORDS),
    "word": _WORD, "was": _WORD})
"""The word of a segment in a lane: it is ``here``, and its upper half is used. junk: the older word
is unknown, or was stored by the segment before."""
_PART = data.StructLayout({"valid": 1, "head": 1, "tail": 1, "compares": 1,
                           "lanes": data.ArrayLayout(_LANE, LANES)})
_SHOWN = [("        return m\n", f"        {LOCALS.format('inner')}return m\n"),
          ('m.submodules[f"lane{k}"] = ram = Ram', "self.lanes = [*getattr(self, 'lanes', []), "
           'dict(locals())]; m.submodules[f"lane{k}"] = ram = Ram')]


def compared(*edits: tuple[str, str], inside: bool = True) -> Bench:
    """Return a bench that compares each segment with the words at its places.

    inside: state the registers of each stage, which makes all statements inductive.
    """
    bench = Bench()
    m = bench.m
    dut = variant(
        WordRing, *edits, *_SHOWN, ("words < 16", f"words < {WORDS}"), Segment=_SEGMENT,
        RECORD_BITS=2, _HALF=1, _LANE_BITS=2, RECORDS_PER_BEAT=LANES, Ram=ShownRam)(WORDS)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    part = _offered(bench, dut)
    line = [part, *(Signal(_PART, name=f"part{k}") for k in range(1, LATENCY))]
    m.d.sync += [after.eq(before) for before, after in pairwise(line)]

    # The verdict follows from the last stage.
    last = line[-1]
    good, junk = (Cat(each) for each in zip(*(_verdict(lane) for lane in last.lanes)))
    equal, dirty = Signal(), Signal()
    equal_now = Mux(last.head, last.compares, equal) & good.all()
    dirty_now = (dirty & ~last.head) | junk.any()
    due, known = Signal(2), Signal()
    m.d.sync += [due.eq(Cat(last.valid & last.tail, equal_now)), known.eq(~dirty_now)]
    with m.If(last.valid):
        m.d.sync += [equal.eq(equal_now), dirty.eq(dirty_now)]
    bench.always("verdict", dut.o.valid == due[0])
    bench.always("equal", ~due[0] | ~known | (dut.o.equal == due[1]))
    bench.always("idle", ~dut.idle | ~Cat(each.valid for each in line[1:]).any())
    if inside:
        _inside(bench, dut, line)
        bench.always("so_far", dirty | (dut.inner["so_far"] == equal))
    return bench


def _offered(bench: Bench, dut: WordRing) -> Signal:
    """Offer segments; return the segment with the words at the places of each lane."""
    m, item, segment = bench.m, dut.i.payload, dut.i.payload.segment
    # The bag of the segment, and its words behind the head: of earlier segments, and of this one.
    open_, kept, bag, done = Signal(), Signal(_BAG), Signal(_BAG), Signal(4)
    came, begin, count, stop = dut.i.valid, Signal(2), Signal(3), Signal(4)
    pairs, rows, size = Signal(3), Signal(3), Signal(4)
    before = Mux(bag.wide, done, done << 1)
    m.d.comb += [
        came.eq(bench.free(name="comes")), bag.eq(Mux(open_, kept, bench.free(_BAG.size, "bag"))),
        pairs.eq((bag.keys + 1) >> 1), rows.eq(Mux(bag.wide, bag.keys, pairs)),
        size.eq(rows + Mux(bag.weighted, pairs, 0)),
        segment.words.eq(bench.free(2 * LANES, "words")), segment.first.eq(bench.free(2, "first")),
        segment.size.eq(bench.free(3, "size")), segment.head.eq(~open_),
        count.eq(segment.size - segment.head), begin.eq(segment.first + segment.head),
        stop.eq(done + count), segment.tail.eq(stop == size),
        segment.keys.eq(Mux(bag.keys > before, bag.keys - before, 0)),
        *(item[name].eq(bag[name]) for name in ("wide", "weighted", "compares", "writes")),
        item.odd.eq(bag.keys[0]), item.old.eq(bag.old + done), item.new.eq(bag.new + done)]
    bench.assume(bag.keys != 0, segment.size != 0, segment.size <= LANES - segment.first,
                 stop <= size)
    bench.always("bag", Mux(open_, done < size, done == 0))
    with m.If(came):
        m.d.sync += [open_.eq(~segment.tail), kept.eq(bag), done.eq(Mux(segment.tail, 0, stop))]

    # The words at all places; ``late``: stored by the segment before.
    place = data.StructLayout({"known": 1, "late": 1, "word": _WORD})
    places = bench.places = [Signal(place, name=f"place{k}") for k in range(WORDS)]
    part = Signal(_PART)
    m.d.comb += [part.valid.eq(came), part.head.eq(segment.head), part.tail.eq(segment.tail),
                 part.compares.eq(item.compares)]
    m.d.sync += [each.late.eq(0) for each in places]
    for k, lane in enumerate(part.lanes):
        number = Signal(2, name=f"number{k}")
        was = data.View(place, Array([Cat(each) for each in places])[lane.old])
        at = done + number + 1
        last = (~bag.wide & (at == pairs)) | (bag.weighted & (at == size))
        m.d.comb += [
            number.eq(k - item.new), lane.old.eq(item.old + number), lane.new.eq(item.new + number),
            lane.here.eq(number < count), lane.high.eq(~(bag.keys[0] & last)),
            lane.writes.eq(came & lane.here & item.writes),
            lane.junk.eq(~was.known | was.late), lane.was.eq(was.word), lane.word.eq(
                Array([segment.words[n] for n in range(LANES)])[(begin + number)[:2]])]
        for n, each in enumerate(places):
            with m.If(lane.writes & (lane.new == n)):
                m.d.sync += [each.known.eq(1), each.late.eq(1), each.word.eq(lane.word)]
    return part


def _verdict(lane: data.View) -> tuple[Value, Value]:
    """Return whether the used halves of a lane's words are equal, and whether this is unknown."""
    differs = (lane.word.low != lane.was.low) | (lane.high & (lane.word.high != lane.was.high))
    return ~(lane.here & differs), lane.here & lane.junk


def _inside(bench: Bench, dut: WordRing, line: list[Signal]) -> None:
    """State the registers of the stages: the words of each lane, and those at all places."""
    inner, parts = dut.inner, bench.m.submodules.dut.submodules
    for k, part in enumerate(line[1:], 1):
        flags = inner["flags"][k - 1]
        bench.always(f"part_{k}", (inner["valid"][k] == part.valid) & (~part.valid | (
            (flags.head == part.head) & (flags.tail == part.tail)
            & (flags.compares == part.compares))))
    rams = [parts[f"lane{k}"] for k in range(LANES)]
    one, two, three, four, five = line[1:]
    for k, lane in enumerate(dut.lanes):
        used, writes, rows, now = (lane[name] for name in ("used", "writes", "rows", "now"))
        for n, part in enumerate(line[1:5]):
            of = part.lanes[k]
            bench.always(f"used_{k}_{n}", ~part.valid | (
                (used[n][0] == of.here) & (used[n][1] == (of.here & of.high))))
            bench.always(f"its_lane_{k}_{n}", ~part.valid | (
                (of.new[:2] == k) & (~of.writes | of.here)))
            if n < 2:
                bench.always(f"writes_{k}_{n}", (writes[n] == of.writes) & (
                    ~of.writes | ((rows[n] == of.new[2:]) & part.valid)))
        of = one.lanes[k]
        word = Array(inner["words"][n] for n in range(LANES))[lane["chosen"]]
        at, row = (k + inner["turn"][0])[:2], of.old[2:]
        bench.always(f"chosen_{k}", ~(one.valid & of.here) | (word == Cat(of.word)))
        bench.always(f"asked_{k}", ~(one.valid & of.here) | (
            (at == of.old[:2]) & (Array(each["old_row"] for each in dut.lanes)[at] == row)))
        bench.always(f"held_{k}", ~(one.valid & of.here) | of.junk | (Array(
            cell for ram in rams for cell in ram.cells)[Cat(row, at)] == Cat(of.was)))
        of = two.lanes[k]
        bench.always(f"turned_{k}", ~(two.valid & of.here) | (now[0] == Cat(of.word)))
        bench.always(f"read_{k}", ~(two.valid & of.here) | of.junk | (
            Array(ram.word for ram in rams)[(k + inner["turn"][1])[:2]] == Cat(of.was)))
        of = three.lanes[k]
        bench.always(f"both_{k}", ~(three.valid & of.here) | (
            (now[1] == Cat(of.word)) & (of.junk | (lane["was"] == Cat(of.was)))))
        good, junk = _verdict(four.lanes[k])
        bench.always(f"same_{k}", ~four.valid | junk | (inner["same"][k] == good))
    good, junk = (Cat(each) for each in zip(*(_verdict(lane) for lane in five.lanes)))
    bench.always("whole", ~five.valid | junk.any() | (inner["whole"] == good.all()))
    for n, place in enumerate(bench.places):
        (late, first), (soon, second) = (
            (of.writes & (of.new == n), Cat(of.word)) for of in (
                part.lanes[n % LANES] for part in (one, two)))
        cell = rams[n % LANES].cells[n // LANES]
        bench.always(f"place_{n}", (place.late == late) & (~place.known | (
            Cat(place.word) == Mux(late, first, Mux(soon, second, cell)))))


def test_word_ring():
    verdict = by_induction(compared())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("equal", "number == size - 1", "number == size"),
    ("equal", "(segment.keys[1:] == number)", "(number == 3)"),
    ("equal", "~item.wide & segment.keys[0]", "segment.keys[0]"),
    ("equal", "item.weighted & segment.tail", "segment.tail"),
    ("equal", "(~used[3] | equal).all()", "(~used[3] | equal)[0]"),
    ("equal", "flags[4].compares, so_far", "flags[4].compares, 1"),
    ("equal", "Mux(flags[4].head, flags[4].compares, so_far)", "so_far"),
    ("equal", "with m.If(valid[5])", "with m.If(valid[4])"),
    ("equal", "(k < item.old[:_LANE_BITS])", "(k <= item.old[:_LANE_BITS])"),
    ("equal", "(k < item.new[:_LANE_BITS])", "0"),
    ("equal", "item.old[:_LANE_BITS] - item.new[:_LANE_BITS]", "item.old[:_LANE_BITS]"),
    ("equal", "turn[1].eq(turn[0])", "turn[1].eq(item.old[:_LANE_BITS] - item.new[:_LANE_BITS])"),
    ("equal", "source.eq(number + begin)", "source.eq(number)"),
    ("equal", "begin.eq(segment.first + segment.head)", "begin.eq(segment.first)"),
    ("equal", "inside.eq(number < size)", "inside.eq(number <= size)"),
    ("equal", "item.writes & inside", "item.writes"),
    ("equal", "self.i.valid & item.writes &", "item.writes &"),
    ("verdict", "valid[5] & flags[4].tail", "valid[5]"),
    ("idle", "Cat(valid[1:]).any()", "Cat(valid[2:]).any()"),
], ids=["last-weight", "last-row", "wide", "no-weights", "low-halves", "last-segment", "any-head",
        "segment-before", "next-row", "one-row", "not-turned", "next-turn", "from-the-first",
        "head", "one-more", "all-lanes", "no-segment", "each-segment", "idle-too-soon"])
def test_broken_word_ring(wrong, old, new):
    verdict = prove(compared((old, new), inside=False), depth=DEPTH)
    assert wrong in verdict.broken, verdict
