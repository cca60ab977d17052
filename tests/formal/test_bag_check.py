"""Proof of the bag check: each bag is accepted or dropped whole and in order, for its own reason,
and each beat returns its credit once.

Segments with any faults arrive at any time, as the splitter gives them
(``tests/rtl/bags/test_splitter.py``): a bag has its segments from head to tail, unless beats are
missing. A bag has at most three segments, and so many places has the store, which is the real one
(``test_segment_store``). Each segment carries the verdicts on its table and its rows; substitutes
find them a cycle later. The queue has two places (``test_credit_queue``).
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream

from rtl.bags.bounds import RowBounds
from rtl.bags.check import BagCheck
from rtl.bags.splitter import SegmentSplit
from rtl.formats import GradientHead, Status
from rtl.keys.owner_split import OwnerSplit
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortQueue
from tests.mutants import variant

PLACES, AHEAD = 3, 2
DEPTH = 12
"""Cycles searched for the fault of a mutant."""
REASONS = (Status.TABLE, Status.KIND, Status.KIND, Status.LENGTH, Status.ROW)
"""The status of each reason, in their order."""
_TABLE = data.StructLayout({"refused": 1, "kind": 1, "own": 1, "owner": 1})
_ITEM = data.StructLayout({
    "gap": 1, "tail": 1, "cut": 1, "long": 1, "keys": 1, "part": 1, "gradient": 1, "weighted": 1,
    "table": _TABLE, "bad_row": 1, "node": 1, "step": 1, "beat_last": 1})
_JUDGED = data.StructLayout({
    "head": 1, "tail": 1, "node": 1, "step": 1, "bad_row": 1, "keys": 1, "beat_last": 1, "wrong": 1,
    "reasons": len(REASONS), "unfinished": 1, "gradient": 1})


class Items(SegmentSplit):
    """A splitter whose items the bench provides."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.idle.eq(~self.o.valid)
        return m


class Owners(OwnerSplit):
    """Finds the verdict on a table in its number."""

    def elaborate(self, platform) -> Module:
        m, found = Module(), self.o.payload
        table = data.View(_TABLE, self.i.payload.key.table[:_TABLE.size])
        m.d.comb += [self.i.ready.eq(1), self.moves.eq(1), self.comes.eq(self.i.valid),
                     self.coming.eq(self.i.payload.user), self.idle.eq(~self.o.valid)]
        m.d.sync += [
            self.o.valid.eq(self.i.valid), found.key.eq(self.i.payload.key),
            found.user.eq(self.i.payload.user), found.refused.eq(table.refused),
            found.own.eq(table.own), found.owner.eq(table.owner), found.status.eq(Mux(
                table.refused, Mux(table.kind, Status.KIND, Status.TABLE), 0))]
        return m


class Bounds(RowBounds):
    """Finds the verdict on the rows of a segment in its words."""

    def elaborate(self, platform) -> Module:
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.bad.eq(self.segment.words[0])
        return m


def checked(*edits: tuple[str, str], training: bool = False, outward: bool = False) -> Bench:
    """Return a bench that follows the segments to the store, and the bags in it."""
    bench = Bench()
    m = bench.m
    dut = variant(
        BagCheck, *edits, SegmentSplit=Items, OwnerSplit=Owners, RowBounds=Bounds,
        CreditQueue=ShortQueue, SEGMENTS=PLACES, AHEAD=AHEAD)(
            SimpleNamespace(tables=16, bag_words=16, training=training, vector_beats=1),
            outward=outward)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    parts = m.submodules.dut.submodules
    split, queue, store = parts.items.o, parts.queue.o, parts.store

    # The next segment, and the judgement that it must get.
    items, inside, length, spoiled = stream.Signature(_ITEM).create(), Signal(), Signal(2), Signal()
    item, out = items.payload, split.payload
    entered, head = bench.source(items), ~inside | item.gap
    number, tail = Mux(head, 0, length), Signal()
    record = data.View(GradientHead, out.record)
    m.d.comb += [
        split.valid.eq(items.valid), items.ready.eq(split.ready),
        tail.eq(item.tail | item.cut | (number == PLACES - 1)),
        out.segment.head.eq(head), out.segment.tail.eq(tail), out.segment.words[0].eq(item.bad_row),
        out.cut.eq(item.cut), out.long.eq(item.long), out.beat_last.eq(item.beat_last),
        out.user.node.eq(item.node), out.user.step.eq(item.step),
        *(record[name].eq(item[name]) for name in ("keys", "part", "gradient", "weighted")),
        record.table.eq(item.table)]
    judged, table = Signal(_JUDGED), item.table
    stray = table.own if outward else ~table.own
    bad_length = item.cut | item.long | ~item.keys | item.part
    if training:
        bad_length |= (item.gradient & item.weighted) | (~item.gradient & outward)
    faults = [table.refused & ~table.kind, table.refused & table.kind, stray, bad_length,
              item.bad_row | (~head & spoiled)]
    m.d.comb += [
        *(judged[name].eq(item[name]) for name in ("step", "bad_row", "keys", "beat_last")),
        judged.head.eq(head), judged.tail.eq(tail), judged.unfinished.eq(item.gap & inside),
        judged.node.eq(table.owner if outward else item.node), judged.wrong.eq(Cat(faults).any()),
        judged.gradient.eq(item.gradient & training),
        judged.reasons.eq(Cat(fault & ~Cat(faults[:k]).any() for k, fault in enumerate(faults)))]
    with m.If(entered):
        m.d.sync += [inside.eq(~tail), length.eq(number + 1), spoiled.eq(faults[-1])]

    # Each segment reaches the store once, in order, with its judgement.
    took, given = store.i.valid & store.i.ready, Signal(_JUDGED)
    m.d.comb += [
        given.head.eq(store.i.payload.segment.head), given.tail.eq(store.i.payload.segment.tail),
        given.bad_row.eq(store.i.payload.segment.words[0]), given.node.eq(store.i.payload.node),
        given.step.eq(store.i.payload.step),
        *(given[name].eq(queue.payload[name]) for name in (
            "keys", "beat_last", "wrong", "unfinished", *(["gradient"] if training else []))),
        # Without a fault there is no reason to count.
        given.reasons.eq(Mux(given.wrong, queue.payload.reasons, 0))]
    count = bench.in_order("items", entered, Cat(judged), took, Cat(given), AHEAD)

    # A bag is committed or revoked once, with all of its segments; its tail decides.
    open_, node, step = Signal(), Signal(), Signal()
    late, commit, revoke = Signal(), store.commit, store.revoke
    if training:
        now = bench.free(name="now")
        m.d.comb += [dut.step.eq(now), late.eq(given.gradient & (given.step != now))]
        if not outward:
            m.d.comb += [dut.open.eq(bench.free(name="open")), late.eq(
                given.gradient & ((given.step != now) | ~dut.open))]
    ends, abort = took & given.tail, revoke & ~took
    with m.If(took):
        m.d.sync += [open_.eq(~given.tail), node.eq(given.node), step.eq(given.step)]
    with m.Elif(revoke):
        m.d.sync += open_.eq(0)
    bench.always("commits", commit == (ends & ~given.wrong & ~late))
    bench.always("revokes", ~took | (revoke == (ends & (given.wrong | late))))
    bench.always("whole", ~took | (given.head == ~open_))
    bench.always("aborts", ~abort | (open_ & queue.valid & queue.payload.unfinished))

    # Events of the cycle before.
    expected = Signal(data.StructLayout({
        "freed": 1, "passed": 1, "refused": 1, "counted": 1, "node": 1, "of": 1}))
    m.d.sync += expected.eq(Cat(
        took & given.beat_last, commit & ~given.gradient, revoke,
        took & given.beat_last & given.gradient, given.node, Mux(took, given.node, node)))
    bench.always("freed", (dut.freed.valid == expected.freed) & (
        ~expected.freed | (dut.freed.node == expected.node)))
    bench.always("passed", (dut.passed.valid == expected.passed) & (
        ~expected.passed | (dut.passed.node == expected.node)))
    bench.always("refused", (dut.refused.valid == expected.refused) & (
        ~expected.refused | (dut.refused.node == expected.of)))
    quiet = ~Cat(dut.freed.valid, dut.passed.valid, dut.refused.valid, dut.o.valid).any()
    m.d.comb += dut.o.ready.eq(bench.free(name="ready"))
    goes = dut.o.ready
    if training:
        bench.always("counted", dut.counted == expected.counted)
        arrives = bench.sink(dut.arrived, "arrived")
        told = bench.in_order("arrived", commit & given.gradient, Cat(given.node, given.step),
                              arrives, Cat(dut.arrived.payload.source[0],
                                           dut.arrived.payload.step[0]), 2)
        quiet &= told == 0
        goes &= dut.arrived.ready
    if outward:
        _faults(bench, dut, given, took, revoke, step)
    bench.within("moves", PLACES + 1, split.valid & goes, entered)
    bench.always("idle", ~dut.idle | (quiet & (count == 0)))
    return bench


def _faults(bench: Bench, dut, given: data.View, took: Value, revoke: Value, step: Value) -> None:
    """State that the fault of each dropped bag is told, with its step."""
    m, refused, told = bench.m, Signal(), Signal(data.StructLayout({"status": 8, "step": 1}))
    status = Signal(8, init=Status.STEP)
    with m.If(~took):
        m.d.comb += status.eq(Status.LENGTH)
    for k, reason in enumerate(REASONS):
        with m.If(took & given.reasons[k]):
            m.d.comb += status.eq(reason)
    m.d.sync += [refused.eq(revoke), told.eq(Cat(status, Mux(took, given.step, step)))]
    bench.always("fault", (dut.fault.valid == refused) & (~refused | (
        (dut.fault.status == told.status) & (dut.fault.step == told.step))))


@pytest.mark.parametrize("training, outward", [(False, False), (True, False), (True, True)])
def test_bag_check(training, outward):
    verdict = prove(checked(training=training, outward=outward))
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, outward, old, new", [
    ({"items_in_order"}, False, "bad_row | (spoiled & ~item.segment.head)", "bad_row"),
    ({"items_in_order"}, False, "(spoiled & ~item.segment.head)", "spoiled"),
    ({"items_in_order"}, False, "spoiled.eq(bad)", "spoiled.eq(bad_row)"),
    ({"items_in_order"}, False, "goes_on.eq(~item.segment.tail)", "goes_on.eq(0)"),
    ({"items_in_order"}, False, "head.gradient & head.weighted", "0"),
    ({"items_in_order"}, True, "~head.gradient | weights", "~head.gradient"),
    ({"items_in_order"}, True, "(~found.own, found.own)", "(found.own, ~found.own)"),
    ({"items_none_invented", "items_in_order"}, False, "queued.ready.eq(store.i.ready & may)",
     "queued.ready.eq(may)"),
    ({"commits"}, False, "arrivals.i.ready, wrong | late", "arrivals.i.ready, wrong"),
    ({"commits"}, False, "(owned.step != self.step) | ~self.open", "owned.step != self.step"),
    ({"revokes", "commits"}, False, "drop.eq(take & segment.tail & wrong)",
     "drop.eq(take & segment.tail & item.wrong)"),
    ({"aborts"}, False, "item.unfinished & ~done", "item.unfinished"),
    ({"aborts", "whole"}, False, "m.d.sync += [done.eq(0),", "m.d.sync += ["),
    ({"whole", "refused"}, False, "store.revoke.eq(drop | abort)", "store.revoke.eq(drop)"),
    ({"whole", "revokes"}, False, "may, wrong, answered = ~abort,",
     "may, wrong, answered = C(1, 1),"),
    ({"freed"}, False, "self.freed.valid.eq(take & item.beat_last)",
     "self.freed.valid.eq(good & item.beat_last)"),
    ({"refused"}, False, "Mux(abort, requester, item.owned.node)", "item.owned.node"),
    ({"passed"}, False, "good & ~item.gradient", "good"),
    ({"counted"}, False, "self.counted.eq(take & item.beat_last & item.gradient)",
     "self.counted.eq(take & item.beat_last)"),
    ({"arrived_bounded"}, False, "may & arrivals.i.ready", "may"),
    ({"fault"}, True, "Mux(abort, step, item.owned.step)", "item.owned.step"),
    ({"fault"}, True, 'events["bad_length"] |= abort', 'events["bad_length"] |= 0'),
    ({"idle"}, False, "quiet &= arrivals.idle", "quiet &= 1"),
], ids=["last-segment", "bag-before", "segment-before", "no-end", "weighted", "weighted-outward",
        "own-bags", "lost", "any-step", "closed", "late-stays", "revoked-often", "revoked-once",
        "not-revoked", "joined", "beats-of-good-bags", "other-node", "answered", "counted-always",
        "arrival-lost", "other-step", "cut-not-told", "idle-too-soon"])
def test_broken_bag_check(wrong, outward, old, new):
    verdict = prove(checked((old, new), training=True, outward=outward), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
