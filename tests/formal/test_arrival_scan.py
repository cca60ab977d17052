"""Proof of the arrival scan: bases advance over arrived packets, and LINK packets report exactly
these.

A window has 16 packets in words of 4 and blocks of 8; numbers are modulo 2^7. The proof is bounded,
because two consecutive reports take 20 cycles.
"""

import pytest
from amaranth.hdl import C, Cat, Mux, Signal
from amaranth.lib import data

from rtl.network.link.arrival_scan import ArrivalScan
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO
from tests.mutants import variant

BITS, WINDOW, WORD, BLOCK, BLOCKS = 7, 16, 4, 8, 4
DEPTH = 28
AT_NODE = data.StructLayout({"valid": 1, "node": 1})
WORD_NUMBER = data.StructLayout({"node": 1, "word": range(WINDOW // WORD)})
MOVED = data.StructLayout({"valid": 1, "node": 1, "base": BITS})
REPORT = data.StructLayout({"node": 1, "block": range(BLOCKS), "forced": 1})
ARRIVALS = data.StructLayout({"node": 1, "first": BITS, "bits": BLOCK})


def has_come(bits, sequence):
    return bits ^ sequence[WINDOW.bit_length() - 1].replicate(len(bits))


def scanned(*edits: tuple[str, str], walks: bool = False) -> Bench:
    """Return a bench of the scan and the bits of peer 0; the other peer's bits are free.

    ``come``: the packets of the window from the base on that have arrived. Any packet may arrive in
    any cycle; the scan gets the event in the next cycle.

    walks: no report is requested, and bases advance in bounded time.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        ArrivalScan, *edits, SEQUENCE_BITS=BITS, NODE_BITS=1, WORD=WORD, WORDS=WINDOW // WORD,
        WINDOW=WINDOW, ARRIVALS=BLOCK, BLOCKS=BLOCKS, _BLOCK_WORDS=BLOCK // WORD, _GROUP=2,
        AtNode=AT_NODE, WordNumber=WORD_NUMBER, Moved=MOVED, Report=REPORT, Arrivals=ARRIVALS,
        StreamFIFO=ShortFIFO, has_come=has_come)(2)
    base, come, told = Signal(BITS), Signal(WINDOW), Signal(BITS)
    first, walked, heard = (C(0, BITS) if walks else bench.constant(BITS, "first"), Signal(BITS),
                            Signal(BITS))
    m.d.comb += [base.eq(first + walked), told.eq(first + heard)]
    # A packet arrives.
    arrives, which = bench.free(name="arrives"), bench.free(range(WINDOW), "which")
    new = Signal(WINDOW)
    m.d.comb += new.eq(come | Mux(arrives, 1 << which, 0))
    came = Signal()
    m.d.sync += came.eq(arrives)
    m.d.comb += [dut.came.valid.eq(came | bench.free(name="other")), dut.came.node.eq(~came)]
    # The base advances.
    moves = Signal()
    step = Signal(BITS)
    m.d.comb += [moves.eq(dut.moved.valid & (dut.moved.node == 0)),
                 step.eq(Mux(moves, dut.moved.base - base, 0))]
    bench.always("moves", (step <= WINDOW) & Cat(
        (step <= k) | come[k] for k in range(WINDOW)).all())
    m.d.sync += [walked.eq(walked + step), come.eq(new >> step[:5])]
    with m.If(bench.free(name="header")):
        m.d.sync += heard.eq(walked)
    # If time is counted, the other peer does not use it up with a whole window.
    elsewhere = bench.free(BITS, "base"), bench.free(WORD, "bits")
    if walks:
        elsewhere = C(0, BITS), elsewhere[1] & C(WORD - 1, WORD)
    m.d.comb += [dut.base.eq(Mux(dut.base_node == 0, base, elsewhere[0])),
                 dut.told.eq(Mux(dut.base_node == 0, told, bench.free(BITS, "told")))]
    # A word is read with its content of the previous cycle.
    word = Signal(WORD)
    for k in range(WORD):
        place = Signal(range(WINDOW), name=f"place{k}")
        number = Signal(BITS, name=f"of{k}")
        m.d.comb += [place.eq(Cat(C(k, 2), dut.scan.word) - base), number.eq(base + place)]
        m.d.comb += word[k].eq(come.bit_select(place, 1) ^ number[4])
    m.d.sync += dut.scanned.eq(Mux(dut.scan.node == 0, word, elsewhere[1]))

    asked = C(0) if walks else bench.source(dut.reports)
    report = dut.reports.payload
    taken = bench.sink(dut.links, "links")
    item = dut.links.payload

    # Any one packet, and whether it had arrived when the report was taken.
    picked = bench.constant(BITS, "picked")
    ahead = Signal(BITS)
    m.d.comb += ahead.eq(picked - base)
    now = ahead[-1] | ((ahead < WINDOW) & come.bit_select(ahead[:4], 1))
    had, mine, forced, running, offered = (Signal(name=n) for n in (
        "had", "mine", "forced", "running", "offered"))
    block = Signal(range(BLOCKS))
    near = Signal(BITS)  # in the window, or up to three blocks before it
    m.d.comb += near.eq(picked - (base & ~(BLOCK - 1)) + 8)
    with m.If(asked):
        m.d.sync += [had.eq(now), mine.eq(report.node == 0), forced.eq(report.forced),
                     block.eq(report.block), running.eq(1)]
    m.d.sync += offered.eq(dut.links.valid & ~taken)
    begins = dut.links.valid & ~offered
    of_it = mine & (picked[3:] == item.first[3:])
    with m.If(begins):
        m.d.sync += running.eq(0)
    bit = item.bits.bit_select(picked[:3], 1)
    bench.always("first", ~begins | ((item.first[:3] == 0) & (item.first[3:5] == block)
                                     & (item.node == ~mine)))
    bench.always("true", ~(begins & of_it & bit) | now)
    bench.always("whole", ~(begins & of_it & had) | bit)
    # A report is dropped only if headers have acknowledged its content.
    ends = running & dut.idle
    since = Signal()  # a packet has arrived, so the base may have advanced again
    m.d.sync += since.eq((since & ~asked) | arrives)
    bench.always("forced", ~(ends & forced))
    bench.always("dropped", ~(ends & mine & had & (picked[3:5] == block) & (near < 32)) | ahead[-1])
    bench.always("told", ~(ends & mine & ~since) | (told == base))
    if walks:
        bench.within("moves_on", 18, come[0], moves & (step != 0))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("walks", [False, True])
def test_arrival_scan(walks):
    verdict = prove(scanned(walks=walks), depth=DEPTH, seconds=900)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, wrong", [
    ("has_come(self.scanned, base) | below", "has_come(self.scanned, base)", "moves"),
    ("has_come(self.scanned, base) | below", "self.scanned | below", "moves"),
    ("_first_zero(part), group)", "_first_zero(part), ~group)", "moves"),
    ("base[in_word:] + whole", "base[in_word:]", "moves"),
    ("at1.eq(apart == 0)", "at1.eq(0)", "whole"),
    ("end1.eq(apart == WORDS)", "end1.eq(0)", "true"),
    ("out1.eq(~late & (apart > WORDS))", "out1.eq(0)", "true"),
    ("before1.eq(late)", "before1.eq(0)", "whole"),
    ("beyond.eq(after > BLOCKS // 2)", "beyond.eq(after >= BLOCKS // 2)", "dropped"),
    ("hole.eq(hole | rises.any())", "hole.eq(rises.any())", "dropped"),
    ("carried.eq(beyond | (after == 0))", "carried.eq(1)", "dropped"),
    ("wanted = report.forced | hole | unsaid", "wanted = hole | unsaid", "forced"),
    ("wanted = report.forced | hole | unsaid", "wanted = report.forced | hole", "told"),
    ("self.reports.valid & ~offered &", "self.reports.valid &", "links_holds"),
], ids=["below-forgotten", "laps-alike", "wrong-group", "not-over-words", "base-word", "end-word",
        "beyond-the-end", "before-the-base", "blocks-mixed", "hole-forgotten", "hole-at-start",
        "not-forced", "untold", "overwritten"])
def test_broken_scan(old, new, wrong):
    verdict = prove(scanned((old, new)), depth=DEPTH)
    assert wrong in verdict.broken, verdict
