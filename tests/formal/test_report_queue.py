"""Proof of the report queue: each event is reported, not too early, and a duplicate by force.

One peer of two blocks; time modulo 2^6, and a delay of up to 7 cycles.
"""

import pytest
from amaranth.hdl import Array, Signal
from amaranth.lib import data

from rtl.network.link.report_queue import ReportQueue
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO

BITS, BLOCKS, DEPTH = 6, 2, 20
CAME = data.StructLayout({"valid": 1, "node": 1, "block": 1, "duplicate": 1})
REPORT = data.StructLayout({"node": 1, "block": 1, "forced": 1})


def queued(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the queue: events at any time, reports that are taken at any time."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        ReportQueue, *edits, TIME_BITS=BITS, DELAY_BITS=3, NODE_BITS=1, BLOCKS=BLOCKS, Came=CAME,
        Report=REPORT, StreamFIFO=ShortFIFO)(1)
    time, clearing, ready, again = Signal(BITS), Signal(), Signal(), Signal()
    m.d.sync += [time.eq(time + 1), clearing.eq(1), ready.eq(clearing), again.eq(dut.came.valid)]
    delay = bench.constant(3, "delay")
    block, duplicate = bench.free(name="block"), bench.free(name="duplicate")
    m.d.comb += [
        dut.time.eq(time), dut.delay.eq(delay), dut.clearing.eq(clearing), dut.ready.eq(ready),
        dut.came.valid.eq(bench.free(name="came") & ready & ~again), dut.came.node.eq(0),
        dut.came.block.eq(block), dut.came.duplicate.eq(duplicate)]
    came = dut.came.valid
    taken = bench.sink(dut.reports, "reports")
    report = dut.reports.payload
    shown = Signal()
    m.d.sync += shown.eq(dut.reports.valid & ~taken)
    offered = dut.reports.valid & ~shown  # in its first cycle
    # Events that no report has been offered for, later than they.
    waits, forced = Signal(BLOCKS), Signal()
    since = Array(Signal(BITS, name=f"since{k}") for k in range(BLOCKS))
    of = report.block
    for k in range(BLOCKS):
        mine = came & (block == k)
        with m.If(offered & (of == k)):
            m.d.sync += [waits[k].eq(mine), since[k].eq(time)]
        with m.Elif(mine & ~waits[k]):
            m.d.sync += [waits[k].eq(1), since[k].eq(time)]
    with m.If(came & duplicate):
        m.d.sync += forced.eq(1)
    with m.Elif(offered):
        m.d.sync += forced.eq(0)
    bench.always("one", ~offered | waits.bit_select(of, 1))
    bench.always("in_time", ~offered | ((time - since[of])[:BITS] >= delay))
    bench.always("forced", ~(offered & forced) | report.forced)
    for k in range(BLOCKS):
        bench.within(f"reported{k}", 16, waits[k] & (taken | ~dut.reports.valid),
                     offered & (of == k))
    bench.always("idle", ~dut.idle | ~(came | dut.reports.valid))
    bench.always("waits", ~dut.idle | (dut.waits == waits.any()))
    bench.always("deadline", ~(dut.idle & dut.waits) | (
        (dut.deadline - time)[:BITS] - 1 < 7))
    return bench


def test_report_queue():
    verdict = prove(queued(), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("old, new, wrong", [
    ("came.valid & (asked.read_data == answered.read_data)", "came.valid", "one"),
    ("before.eq(passed[-1])", "before.eq(0)", "in_time"),
    ("later.eq(self.time + self.delay)", "later.eq(self.time)", "in_time"),
    ("bit_select(head.node, 1) | (duplicate & same)", "bit_select(head.node, 1)", "forced"),
    ("forced.bit_select(came.node, 1).eq(1)", "forced.bit_select(came.node, 1).eq(0)", "forced"),
    ("self.ready & ~own.read_data", "self.ready & own.read_data", "waits"),
    ("taken.eq(reached & ~offered)", "taken.eq(reached)", "reports_holds"),
    ("self.idle.eq(~came.valid & ~offered & ~reached", "self.idle.eq(~came.valid & ~reached",
     "idle"),
    ("self.waits.eq(queue.o.valid)", "self.waits.eq(queue.o.valid & ~before)", "waits"),
], ids=["queued-twice", "at-once", "no-delay", "forced-as-taken", "not-forced", "not-answered",
        "overwritten", "idle-while-offered", "waits-late"])
def test_broken_queue(old, new, wrong):
    verdict = prove(queued((old, new)), depth=DEPTH)
    assert wrong in verdict.broken, verdict
