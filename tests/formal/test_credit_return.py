"""Proof of the credit return: every consumed quarter of a window is reported in time.

Counts are modulo 2^16 in the hardware and modulo 2^4 here, for two nodes. Windows this small report
a half instead of a quarter. A header in the previous cycle uses the scan's read port, so only other
cycles count. They are at least half of all cycles, because packets have two beats or more.
"""

import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib import data

from rtl.network import CreditCounter
from rtl.network.credit_return import CreditReturn
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS, NODES, MOST = 4, 2, 2
HALF = 1 << (BITS - 1)
CREDIT = data.StructLayout({"valid": 1, "node": 1, "value": BITS})
FREED = data.StructLayout({"valid": 1, "node": 1, "beats": 2})
TOLD = NODES + 3
"""Quiet cycles from an owed credit to its record, as in the block's latency."""


def returned(*edits: tuple[str, str]) -> Bench:
    """Return a bench that frees beats and sends headers at any time, and follows any one node."""
    bench = Bench()
    m = bench.m
    counter = variant(CreditCounter, CREDIT_BITS=BITS, FreedBeats=FREED)
    m.submodules.dut = dut = variant(
        CreditReturn, *edits,
        ("self.window < 8, 1, self.window >> 2", "self.window < 4, 1, part"),
        ("quarter, asked =", "part = self.window >> 1\n        quarter, asked ="),
        CREDIT_BITS=BITS, HALF=HALF, Credit=CREDIT, FreedBeats=FREED,
        CreditCounter=counter)(NODES)
    node, window = bench.constant(1, "node"), bench.constant(BITS, "window")
    # A header contains the count of its node as it leaves. No header leaves during the sweep after
    # reset.
    swept = Signal(range(NODES + 1))
    m.d.sync += swept.eq(Mux(swept == NODES, swept, swept + 1))
    ready = swept == NODES
    freed, reported = dut.freed, dut.reported
    m.d.comb += [
        dut.window.eq(window), freed.valid.eq(bench.free(name="frees") & ready),
        freed.node.eq(bench.free(name="of")), freed.beats.eq(bench.free(2, "beats")),
        dut.node[0].eq(bench.free(name="to")),
        reported.valid.eq(bench.free(name="leaves") & ready), reported.node.eq(dut.node[0]),
        reported.value.eq(dut.value[0])]
    left, shown = bench.sink(dut.steps, "steps", dut.steps.payload.destination), dut.steps.payload

    # The count of the node, the last reported count, and a record without a later header.
    consumed, told, asked = Signal(BITS), Signal(BITS), Signal()
    mine, header = freed.valid & (freed.node == node), reported.valid & (reported.node == node)
    owed, quarter = Signal(BITS), Signal(BITS)
    m.d.comb += [owed.eq(consumed - told),
                 quarter.eq(Mux(window < 4, 1, window >> 1))]
    m.d.sync += consumed.eq(consumed + Mux(mine, freed.beats, 0))
    with m.If(header):
        m.d.sync += [told.eq(consumed), asked.eq(0)]
    record = left & (shown.destination == node)
    with m.If(record):
        m.d.sync += asked.eq(1)
    bench.always("counts", ~ready | (dut.node[0] != node) | (dut.value[0] == consumed))
    # A window is below half of the range: no sender has more outstanding, so no more is owed.
    bench.assume(window < HALF, (owed + Mux(mine, freed.beats, 0))[:BITS + 1] <= window,
                 ~freed.valid | (freed.beats != 0) & (freed.beats <= MOST))
    before = Signal()
    m.d.sync += before.eq(reported.valid)
    quiet = ready & ~before & dut.steps.ready
    on_its_way = dut.steps.valid & (shown.destination == node)
    bench.within("told", TOLD, quiet & (owed >= quarter) & ~asked, on_its_way | header)
    # One record for each header that left, plus one; counted up to three.
    allowed = Signal(range(4), init=1)
    m.d.sync += allowed.eq(Mux(header == record, allowed, Mux(
        record, allowed - 1, Mux(allowed == 3, 3, allowed + 1))))
    bench.always("one_until_a_header", ~record | (allowed != 0))
    bench.always("idle", ~dut.idle | ~dut.steps.valid)
    bench.always("idle_when_told", ~(dut.idle & ready) | before | (owed < quarter) | asked)
    return bench


DEPTH = 18


@pytest.mark.thorough
@pytest.mark.parametrize("depth", [DEPTH, pytest.param(None, marks=pytest.mark.slow)])
def test_credit_return(depth):
    """Without a bound, the proof takes a minute."""
    verdict = prove(returned(), depth=depth, seconds=900)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("m.d.sync += left.eq(self._nodes)", "m.d.sync += left.eq(1)", "told"),
    ("self.freed.valid | event.valid):", "event.valid):", "told"),
    ("(owed >= quarter)", "(owed > quarter)", "told"),
    ("asked.bit_select(event.node, 1).eq(0)", "asked.bit_select(event.node, 1).eq(1)", "told"),
    ("(owed >= quarter) & ~asked.bit_select(node, 1)", "(owed >= quarter)", "one_until_a_header"),
    ("counter.freed.eq(self.freed)", "counter.freed.eq(Mux(self.freed.beats == 1, self.freed, 0))",
     "counts"),
    ("Mux(event.valid, event.node, look)", "look", "told"),
    ("(left == 0) & ~looked & ~event.valid", "~looked & ~event.valid", "idle_when_told"),
], ids=["one-node", "not-seen", "more-than-owed", "asked-for-ever", "asked-again",
        "beats-lost", "told-of-another", "idle-too-soon"])
def test_broken_credit_return(old, new, what):
    verdict = prove(returned((old, new)), depth=2 * DEPTH)
    assert set(verdict.broken) & {what, "idle_when_told"}, verdict
