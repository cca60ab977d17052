"""Proofs of the credit of bags of gradients: each counted beat is reported once, in time; headers
and records arrive once.

Counts are modulo 2^16 in the hardware and modulo 2^4 here, for two nodes. A window is less than
half of the range. Windows this small report a half instead of a quarter.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.bags.credit import BagCredit, BagCreditReturn
from rtl.formats import RECORD_BITS, StepKind, StepRecord
from rtl.network import CreditCounter
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS, NODES = 4, 2
CREDIT = data.StructLayout({"valid": 1, "node": 1, "value": BITS})
TOLD = NODES + 2
"""Cycles in which records may leave, from an unreported quarter to its record."""
DEPTH = 24
"""Cycles searched for the fault of a mutant."""


def returned(*edits: tuple[str, str]) -> Bench:
    """Return a bench that frees beats of any kind at any time, and follows any one node."""
    bench = Bench()
    m = bench.m
    m.submodules.counter = counter = variant(CreditCounter, CREDIT_BITS=BITS)(NODES)
    m.submodules.dut = dut = variant(
        BagCreditReturn, *edits, ("self.window < 8, 1, self.window >> 2",
                                  "self.window < 4, 1, self.window >> 1"), CREDIT_BITS=BITS)(NODES)
    node, window = bench.constant(1, "node"), bench.constant(BITS - 1, "window")
    started = Signal(range(NODES + 2))
    m.d.sync += started.eq(Mux(started == NODES + 1, started, started + 1))
    freed, item = dut.freed, dut.o.payload
    record = data.View(StepRecord, item.record)
    m.d.comb += [
        dut.window.eq(window), dut.step.eq(bench.free(1, "step")),
        freed.valid.eq(bench.free(name="frees") & (started == NODES + 1)),
        freed.node.eq(bench.free(name="of")), dut.counted.eq(bench.free(name="counted")),
        counter.freed.eq(freed), counter.node[0].eq(dut.credit_node),
        dut.credit.eq(counter.value[0])]
    left = bench.sink(dut.o, "o", Cat(item.destination, record.kind, record.level))
    mine = left & (item.destination == node)

    # All beats of the node, and those with gradients that no record has reported.
    consumed, untold, quarter = Signal(BITS), Signal(BITS), Signal(BITS)
    of_node = freed.valid & (freed.node == node)
    m.d.comb += quarter.eq(Mux(window < 4, 1, window >> 1))
    m.d.sync += [consumed.eq(consumed + of_node),
                 untold.eq(Mux(mine, 0, untold) + (of_node & dut.counted))]
    # No requester has more beats in flight.
    bench.assume(untold + (of_node & dut.counted) <= window, window != 0)
    bench.always("count", ~mine | (record.count == consumed))
    bench.always("kind", ~left | ((record.kind == StepKind.CREDIT) & record.level
                                  & (item.step == dut.step)))
    # A record that waits reports every beat until it leaves.
    bench.within("told", TOLD, dut.o.ready & (untold >= quarter), mine)

    # Beats since a record was due: fewer than a quarter cause no record.
    saved, following = Signal(BITS), Signal(BITS)
    m.d.comb += following.eq(saved - Mux(mine, quarter, 0) + (of_node & dut.counted))
    m.d.sync += saved.eq(Mux(following > 2 * quarter, 2 * quarter, following))
    bench.always("earned", ~mine | (saved >= quarter))
    bench.always("idle", ~dut.idle | (~dut.o.valid & (untold < quarter)))
    return bench


def merged(*edits: tuple[str, str]) -> Bench:
    """Return a bench with packets of two beats: no event in two cycles one after the other."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(BagCredit, *edits, Credit=CREDIT)()
    record, before = Signal(StepRecord), Signal(2)
    m.d.comb += [
        dut.header.eq(bench.free(CREDIT.size, "header")), record.eq(bench.free(
            StepRecord.size, "record")), dut.valid.eq(bench.free(name="comes")),
        dut.beat.data[:RECORD_BITS].eq(record), dut.beat.source.eq(bench.free(name="source"))]
    m.d.sync += before.eq(Cat(dut.header.valid, dut.valid))
    bench.assume((before & Cat(dut.header.valid, dut.valid)) == 0)
    event = dut.valid & (record.kind == StepKind.CREDIT) & record.level
    bench.always("header", ~dut.header.valid | (dut.o == dut.header))
    left = dut.o.valid & ~dut.header.valid
    inside = bench.in_order("records", event, Cat(dut.beat.source[0], record.count[:BITS]), left,
                            Cat(dut.o.node, dut.o.value), 1)
    bench.within("leaves", 1, inside != 0, left)
    bench.always("idle", ~dut.idle | (inside == 0))
    return bench


def test_credit_return():
    verdict = prove(returned())
    assert verdict.holds, verdict


def test_credits_merge():
    verdict = prove(merged())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"told", "idle"}, "& ~(leaves & (queue.o.payload == self.freed.node))", ""),
    ({"earned"}, "come.eq(self.freed.valid & self.counted)", "come.eq(self.freed.valid)"),
    ({"told", "idle"}, "owed.read_data >= before", "owed.read_data > before"),
    ({"earned"}, "Mux(swept & ~due, owed.read_data + 1, 0)", "Mux(swept, owed.read_data + 1, 0)"),
    ({"told", "idle"}, "owed.read_addr.eq(self.freed.node)", "owed.read_addr.eq(0)"),
    ({"earned"}, "self.freed.node, 1).eq(1)", "self.freed.node, 1).eq(0)"),
    ({"told", "idle"}, "queue.o.payload, 1).eq(0)", "queue.o.payload, 1).eq(1)"),
    ({"count"}, "self.credit_node.eq(queue.o.payload)", "self.credit_node.eq(self.freed.node)"),
], ids=["in-the-same-cycle", "answered-beats", "late", "counted-for-ever", "of-another-node",
        "queued-often", "queued-for-ever", "credit-of-another"])
def test_broken_credit_return(wrong, old, new):
    verdict = prove(returned((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"records_in_order"}, "kept.node.eq(self.beat.source)", "kept.node.eq(self.header.node)"),
    ({"header", "leaves"}, "self.o.eq(Mux(self.header.valid,", "self.o.eq(Mux(~kept.valid,"),
    ({"idle"}, "m.If(~self.header.valid)", "m.If(1)"),
    ({"records_none_invented"}, "(record.kind == StepKind.CREDIT) &", ""),
    ({"records_none_invented"}, "StepKind.CREDIT) & record.level", "StepKind.CREDIT)"),
], ids=["node-of-a-header", "header-lost", "record-lost", "any-kind", "of-partials"])
def test_broken_credits_merge(wrong, old, new):
    verdict = prove(merged((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
