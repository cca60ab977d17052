"""Proof of the word ring: a bag is equal exactly if each of its rows and weights equals what was
last stored at the place that it is compared with.

There are four lanes of two words, and words of two bits, one for each half. Bags of one to seven
keys, wide or weighted or both, arrive in segments of any sizes, from any word of a beat, at any
time; each bag is stored and compared at any places. The bench finds the used halves of a bag from
its number of keys and the words before.
"""

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal
from amaranth.lib import data

from rtl.bags.word_ring import WordRing
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

LANES, WORDS = 4, 8
LATENCY = WordRing.LATENCY["tail", "its verdict"]
DEPTH = 14
"""Cycles searched for the fault of a mutant."""
_WORD = data.StructLayout({"low": 1, "high": 1})
_SEGMENT = data.StructLayout({
    "words": data.ArrayLayout(_WORD, LANES), "first": range(LANES), "size": range(LANES + 1),
    "head": 1, "tail": 1, "keys": 3})
_BAG = data.StructLayout({"keys": 3, "wide": 1, "weighted": 1, "compares": 1, "writes": 1,
                          "old": range(WORDS), "new": range(WORDS)})


def compared(*edits: tuple[str, str]) -> Bench:
    """Return a bench that keeps the words at all places."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        WordRing, *edits, ("words < 16", f"words < {WORDS}"), Segment=_SEGMENT, RECORD_BITS=2,
        _HALF=1, _LANE_BITS=2, RECORDS_PER_BEAT=LANES)(WORDS)
    item, segment = dut.i.payload, dut.i.payload.segment

    # The bag of the segment, and its words behind the head: of earlier segments, and of this one.
    inside, kept, bag, done = Signal(), Signal(_BAG), Signal(_BAG), Signal(4)
    came, begin, count, stop = dut.i.valid, Signal(2), Signal(3), Signal(4)
    pairs, rows, size = Signal(3), Signal(3), Signal(4)
    m.d.comb += [
        came.eq(bench.free(name="comes")), bag.eq(Mux(inside, kept, bench.free(_BAG.size, "bag"))),
        pairs.eq((bag.keys + 1) >> 1), rows.eq(Mux(bag.wide, bag.keys, pairs)),
        size.eq(rows + Mux(bag.weighted, pairs, 0)),
        segment.words.eq(bench.free(2 * LANES, "words")), segment.first.eq(bench.free(2, "first")),
        segment.size.eq(bench.free(3, "size")), segment.head.eq(~inside),
        count.eq(segment.size - segment.head), begin.eq(segment.first + segment.head),
        stop.eq(done + count), segment.tail.eq(stop == size),
        segment.keys.eq(Mux(bag.keys > Mux(bag.wide, done, done << 1),
                            bag.keys - Mux(bag.wide, done, done << 1), 0)),
        *(item[name].eq(bag[name]) for name in ("wide", "weighted", "compares", "writes")),
        item.odd.eq(bag.keys[0]), item.old.eq(bag.old + done), item.new.eq(bag.new + done)]
    bench.assume(bag.keys != 0, segment.size != 0, segment.size <= LANES - segment.first,
                 stop <= size)
    with m.If(came):
        m.d.sync += [inside.eq(~segment.tail), kept.eq(bag), done.eq(Mux(segment.tail, 0, stop))]

    # The words at all places. One that was stored by the segment before may not be compared.
    held = [Signal(data.StructLayout({"known": 1, "late": 1, "word": _WORD}), name=f"place{k}")
            for k in range(WORDS)]
    used = data.StructLayout({"low": 1, "high": 1})
    differs, junk = [], []
    for n in range(LANES):
        word = data.View(_WORD, Array(segment.words)[(begin + n)[:2]])
        high = ~bag.keys[0] | ~((~bag.wide & (done + n + 1 == pairs))
                                | (bag.weighted & (done + n + 1 == size)))
        was = data.View(held[0].shape(), Array(held)[(item.old + n)[:3]])
        here = n < count
        junk.append(here & (~was.known | was.late))
        differs.append(here & ((word.low != was.word.low) | (high & (word.high != was.word.high))))
    for k, place in enumerate(held):
        number = Signal(3, name=f"number{k}")
        m.d.comb += number.eq(k - item.new)
        m.d.sync += place.late.eq(0)
        with m.If(came & item.writes & (number < count)):
            m.d.sync += [place.known.eq(1), place.late.eq(1), place.word.eq(
                Array(segment.words)[(begin + number)[:2]])]

    found = data.StructLayout({"tail": 1, "equal": 1, "junk": 1})
    sofar, line = Signal(found), [Signal(found, name=f"found{k}") for k in range(LATENCY + 1)]
    m.d.comb += line[0].eq(Cat(
        came & segment.tail, Mux(inside, sofar.equal, bag.compares) & ~Cat(differs).any(),
        (inside & sofar.junk) | Cat(junk).any()))
    with m.If(came):
        m.d.sync += sofar.eq(line[0])
    m.d.sync += [after.eq(before) for before, after in zip(line, line[1:])]
    due = line[-1]
    bench.always("verdict", dut.o.valid == due.tail)
    bench.always("equal", ~due.tail | due.junk | (dut.o.equal == due.equal))
    return bench


@pytest.mark.thorough
def test_word_ring():
    verdict = prove(compared())
    assert verdict.holds, verdict
