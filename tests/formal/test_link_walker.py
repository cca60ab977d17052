"""Proof of the walks over a peer's packets: each acknowledged packet is freed once, and never again
visited as possibly overdue.

The window has 16 packets here, a word four, and numbers six bits. All other parts are as in the
hardware.
"""

import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib import data

from rtl.network.link.walker import Walker
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS, WINDOW, ARRIVALS = 6, 16, 8
SMALL = (
    ("from rtl.formats import NODE_BITS, SEQUENCE_BITS", f"NODE_BITS, SEQUENCE_BITS = 1, {BITS}"),
    ("from rtl.network.link.layouts import ARRIVALS, WINDOW, Arrivals",
     f"ARRIVALS, WINDOW, Arrivals = {ARRIVALS}, {WINDOW}, None"),
    ("from rtl.network.link.peer_windows import AtSequence",
     "AtSequence = data.StructLayout({'valid': 1, 'node': 1, 'sequence': SEQUENCE_BITS})"),
    ("WORD = 64", "WORD = 4"))
SAID = data.StructLayout({"node": 1, "first": BITS, "bits": ARRIVALS})
DEPTH = 26


def walks(first: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench that sends and acknowledges packets at any time, and follows any one packet.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(Walker, *SMALL, *edits, Arrivals=SAID)(1, first)
    oldest, told, sent = (Signal(BITS, init=first, name=name)
                          for name in ("oldest", "told", "sent"))

    def ahead(of, to):
        return (of - to)[:BITS]

    # Any number of packets is sent and acknowledged in a cycle.
    sends, tells = bench.free(2, "sends"), bench.free(BITS, "tells")
    moves = Mux(ahead(sent, oldest) + sends <= WINDOW, sends, 0)
    m.d.sync += sent.eq(sent + moves)
    with m.If(bench.free(name="hears") & (tells <= ahead(sent, told))):
        m.d.sync += told.eq(told + tells)
    with m.If(dut.freed.valid):
        m.d.sync += oldest.eq(dut.freed.sequence)
    m.d.comb += [dut.oldest.eq(oldest), dut.told.eq(told), dut.sent.eq(sent),
                 dut.free.eq(bench.free(name="free"))]
    said = Signal(SAID)
    m.d.comb += [said.bits.eq(bench.free(ARRIVALS, "bits")),
                 said.first.eq(bench.free(BITS, "at") & 0b111000)]
    bench.source(dut.arrived, said.as_value())
    bench.source(dut.heard, Signal())
    bench.source(dut.looks, Signal())
    waits = Signal()
    due, frees = dut.look.valid & dut.look.due, dut.look.valid & ~dut.look.due
    m.d.comb += [dut.decided.eq(waits & bench.free(name="decided")),
                 dut.stop.eq(bench.free(name="stop"))]
    m.d.sync += waits.eq((waits | due) & ~dut.decided)

    packet = bench.constant(BITS, "packet")
    bench.assume(ahead(packet, first) < WINDOW)
    alive = (ahead(packet, first) < ahead(sent, first)) & (ahead(sent, first) <= 2 * WINDOW)
    mine, asked = dut.look.sequence == packet, Signal()
    place = ahead(packet, dut.arrived.payload.first)
    arrived = dut.arrived.valid & (place < ARRIVALS) & dut.arrived.payload.bits.bit_select(
        place[:3], 1)
    acknowledged, came = (ahead(packet, first) < ahead(told, first)) | arrived, Signal()
    m.d.sync += [asked.eq(asked | (frees & mine)), came.eq(came | acknowledged)]
    bench.always("sent", ~(dut.look.valid & mine) | alive)
    bench.always("acknowledged", ~(frees & mine) | came | acknowledged)
    bench.always("once", ~(frees & mine & asked))
    bench.always("not_again", ~(due & mine & asked))
    bench.always("all", ~(dut.freed.valid & (ahead(packet, first) < ahead(
        dut.freed.sequence, first)) & (ahead(dut.freed.sequence, first) <= WINDOW))
        | asked | (frees & mine))
    bench.always("in_window", ~dut.freed.valid | (ahead(dut.freed.sequence, oldest)
                                                  <= ahead(sent, oldest)))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, 62])
def test_walks(first):
    verdict = prove(walks(first), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new", [
    ("words.write_data.eq(Mux(marks, word ^ left", "words.write_data.eq(Mux(marks, word"),
    ("lap.eq(base[LAP - WORD_BITS])", "lap.eq(0)"),
    ("write.eq(~kind[overdue])", "write.eq(1)"),
    ("(high[:WORD_BITS] > k)", "(high[:WORD_BITS] >= k)"),
    ("(low <= k)", "(low < k)"),
    ("said.first[BLOCK_BITS:]))]", "said.first[BLOCK_BITS:]) | 1)]"),
    ("m.d.sync += left.eq(left & less)", "m.d.sync += left.eq(left)"),
], ids=["not-marked", "no-lap", "marked-when-due", "one-more", "one-less", "another-block",
        "asked-twice"])
def test_broken_walks(old, new):
    assert not prove(walks(14, (old, new)), depth=DEPTH).holds
