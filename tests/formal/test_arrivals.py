"""Proofs of the receiver of the reliable link: a packet is admitted once, and acknowledged after
that.

A window has 4 packets in words of 2; numbers are modulo 2^5. A peer's base advances at any time
over any arrived packets. Other peers are unconstrained.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.network.link.arrival_bits import ArrivalBits
from rtl.network.link.arrival_scan import ArrivalScan
from rtl.network.link.receiver import LinkReceiver
from rtl.network.link.report_queue import ReportQueue
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.test_tags import alike
from tests.mutants import variant

BITS, WINDOW, WORD, NODES = 5, 4, 2, 2
NUMBER = data.StructLayout({"source": 1, "sequence": BITS})
PACKET = data.StructLayout({"valid": 1, "link": 1, "room": 1, "bad_epoch": 1, "number": NUMBER,
                            "acknowledge": 1, "data": 1})
ACKNOWLEDGED = data.StructLayout({"valid": 1, "node": 1, "acknowledge": 1})
ARRIVALS = data.StructLayout({"node": 1, "first": BITS, "bits": 1})
WORD_NUMBER = data.StructLayout({"node": 1, "word": 1})
MOVED = data.StructLayout({"valid": 1, "node": 1, "base": BITS})


def received(*edits: tuple[str, str], of_bits: bool = False, first: int = 0) -> Bench:
    """Return a bench of the link receiver with peers that send anything, and the base of peer 0.

    first: number of each peer's first packet.

    The scan is replaced by any scan that advances a base only over arrived packets. ``come`` marks
    the admitted packets of peer 0 in the window from its base on.
    """
    bench = Bench()
    m = bench.m
    moved, scan = Signal(MOVED, name="moves"), Signal(WORD_NUMBER, name="scans")
    scanned = Signal(WORD, name="scan_bits")

    def any_scan(m, self):
        m.d.comb += [self.moved.eq(moved), self.scan.eq(scan), scanned.eq(self.scanned),
                     self.idle.eq(1), self.links.valid.eq(0), self.reports.ready.eq(1)]

    def no_queue(m, self):
        m.d.comb += self.idle.eq(1)

    names = {"PacketNumber": NUMBER, "WINDOW": WINDOW, "WORDS": WINDOW // WORD}
    bits = variant(ArrivalBits, *(edits if of_bits else ()), **names, WORD=WORD,
                   WordNumber=WORD_NUMBER)
    dut = variant(
        LinkReceiver, *(() if of_bits else edits), **names, SEQUENCE_BITS=BITS, ArrivalBits=bits,
        ArrivalScan=alike(variant(
            ArrivalScan, SEQUENCE_BITS=BITS, WORD=WORD, WordNumber=WORD_NUMBER, Moved=MOVED,
            Arrivals=ARRIVALS), any_scan), ReportQueue=alike(ReportQueue, no_queue),
        GoodPacket=PACKET, Acknowledged=ACKNOWLEDGED, Arrivals=ARRIVALS)(
            NODES, first_sequence=first)
    m.submodules.dut = dut
    # A packet's last cycle is three cycles after its number, and never in consecutive cycles.
    number = bench.free(1 + BITS, "number")
    before = [Signal(1 + BITS, name=f"number{k}") for k in range(3)]
    again, packet = Signal(), dut.packet
    m.d.sync += [before[0].eq(number), before[1].eq(before[0]), before[2].eq(before[1]),
                 again.eq(packet.valid)]
    m.d.comb += [
        dut.look.eq(number), packet.number.eq(before[2]),
        packet.valid.eq(bench.free(name="packet") & ~again),
        packet.link.eq(bench.free(name="link")), packet.room.eq(bench.free(name="room")),
    ]
    admitted = packet.valid & ~packet.link & packet.room & dut.fresh
    mine = packet.number.source == 0

    base, come = Signal(BITS, init=first), Signal(WINDOW)
    ahead, place = Signal(BITS), Signal(range(WINDOW))
    m.d.comb += [ahead.eq(packet.number.sequence - base), place.eq(ahead)]
    steps = bench.free(range(WINDOW + 1), "steps")
    own = bench.free(name="own")
    runs = Cat(come[:k].all() & (steps == k) for k in range(WINDOW + 1)).any()
    step = Mux(own & runs & dut.ready, steps, 0)
    m.d.comb += [
        moved.valid.eq(Mux(own, runs, bench.free(name="other")) & dut.ready),
        moved.node.eq(~own), moved.base.eq(Mux(own, base + step, bench.free(BITS, "base"))),
        dut.ack_node.eq(0),
    ]
    after = come | Mux(admitted & mine, 1 << place, 0)
    m.d.sync += [base.eq(base + step), come.eq(after >> step)]
    # Packets of peer 0 are from the half of the numbers around its base.
    near = Signal(BITS)
    m.d.comb += near.eq(before[2][1:] - base + 8)
    bench.assume(near < 16)
    is_before, is_within = ahead[-1], ahead < WINDOW
    has = is_before | (is_within & come.bit_select(place, 1))
    ready = Signal(2)
    m.d.sync += ready.eq(Cat(dut.ready, ready))
    told = packet.valid & mine & ready.all()
    bench.always("never_twice", ~(admitted & mine) | (is_within & ~come.bit_select(place, 1)))
    bench.always("duplicate", ~told | (dut.duplicate == has))
    # Unless the base has advanced since the number was compared.
    still = Signal(2)
    m.d.sync += still.eq(Cat(step == 0, still))
    bench.always("fresh", ~told | has | ~is_within | ~still.all() | dut.fresh)
    bench.always("one", ~told | (dut.fresh + dut.duplicate + dut.outside == 1))
    bench.always("shown", ~dut.ready | (dut.ack_value == base))
    bench.always("acknowledged", dut.acknowledged.valid == again)
    # The scanned word, one cycle later.
    was, from_base = Signal(WINDOW), Signal(BITS)
    scanning = Signal(WORD_NUMBER)
    m.d.comb += scan.eq(bench.free(2, "scan"))
    m.d.sync += [was.eq(come), from_base.eq(base), scanning.eq(scan)]
    picked = bench.free(range(WINDOW), "picked")
    sequence = Signal(BITS)
    m.d.comb += sequence.eq(from_base + picked)
    shows = variant_of_has_come(scanned, sequence)
    bench.always("scanned", ~dut.ready | (scanning.node != 0) | (sequence[1] != scanning.word) | (
        shows.bit_select(sequence[0], 1) == was.bit_select(picked, 1)))
    return bench


def variant_of_has_come(bits, sequence):
    """The function :func:`has_come` with the window of this file."""
    return bits ^ sequence[WINDOW.bit_length() - 1].replicate(len(bits))


@pytest.mark.thorough
def test_admitted_once():
    verdict = prove(received(), seconds=900)
    assert verdict.holds, verdict


def test_a_window_that_begins_within_a_lap():
    """The first packet has the second bit of the second word; the first word belongs to the next
    lap."""
    verdict = prove(received(first=3), depth=16)
    assert verdict.holds, verdict
    edit = ("Mux(word < first", "Mux(word <= first")
    verdict = prove(received(edit, of_bits=True, first=3), depth=16)
    assert "scanned" in verdict.broken, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("of_bits, old, new, wrong", [
    (True, "meets.eq(self.mark & (", "meets.eq(C(0) & (", "never_twice"),
    (True, "met.eq(meets | (self.mark & (", "met.eq(meets | (C(0) & (", "never_twice"),
    (True, "        with m.If(self.mark):\n", "        with m.If(1):\n", "never_twice"),
    (True, "word.eq(found)", "word.eq(looked.read_data)", "never_twice"),
    (True, "(kept | just_written) ^ then.lap", "kept | just_written", "duplicate"),
    (True, "Cat(read.word, read.node) == Cat(then.word, then.node)", "read.word == then.word",
     "duplicate"),
    (True, "C(ones * lap, WORD))", "C(ones * (1 - lap), WORD))", "scanned"),
    (False, "packet.valid & ~packet.link & packet.room", "packet.valid & ~packet.link",
     "duplicate"),
    (False, "packet.valid & ~packet.link & packet.room", "packet.valid & packet.room",
     "duplicate"),
    (False, "admitted.eq(first & self.fresh)", "admitted.eq(first & ~self.outside)",
     "duplicate"),
    (False, "within.eq(~ahead[window:].any()", "within.eq(~ahead[window + 1:].any()",
     "duplicate"),
    (False, "within.eq(~ahead[window:].any()", "within.eq(~ahead[window - 1:].any()", "fresh"),
    (False, "before | (within & come)", "within & come", "duplicate"),
    (False, "base1.eq(base)", "base1.eq(base + 1)", "duplicate"),
], ids=["copy-at-once", "copy-soon", "not-held", "neighbour-lost", "laps-alike", "other-peer",
        "cleared-as-come", "overrun-marked", "link-marked", "duplicate-marked", "beyond-admitted",
        "window-short", "long-ago", "base-wrong"])
def test_broken_admission(of_bits, old, new, wrong):
    verdict = prove(received((old, new), of_bits=of_bits), depth=16)
    assert wrong in verdict.broken, verdict
