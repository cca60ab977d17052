"""Proof of the report queue: each event is reported, not too early, and a duplicate forces a
report.

The proof covers runs of any length, for one peer and two, of two blocks each. Time is modulo 2^6,
and the delay up to 7 cycles. Reports may be taken at any time. If each report is taken within some
cycles, each event is reported in a bounded time. The reported deadline is correct. Induction needs
an invariant, which is stated too.
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal
from amaranth.lib import data

from rtl.network.link.report_queue import ReportQueue
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.mutants import variant

BITS, BLOCKS, DEPTH = 6, 2, 20
LONGEST = 2 ** BITS - 1
CAME = data.StructLayout({"valid": 1, "node": 1, "block": 1, "duplicate": 1})
REPORT = data.StructLayout({"node": 1, "block": 1, "forced": 1})


class Queued:
    """The queue, events at any time, reports taken at any time, and statements.

    patience: a report is taken at the latest after this many cycles.

    Members
    -------
    waits: for each block, an event after which no report was offered.
    age: cycles since the first such event, up to a limit.
    first: a report is offered in its first cycle.
    """

    def __init__(self, *edits: tuple[str, str], nodes: int = 1, patience: int | None = None):
        self.bench = bench = Bench()
        m, self.nodes, self.places = bench.m, nodes, nodes * BLOCKS
        self.dut = dut = variant(
            ReportQueue, *edits, ("        return m\n",
                                  f"        {LOCALS.format('inner')}return m\n"),
            TIME_BITS=BITS, DELAY_BITS=3, NODE_BITS=1, BLOCKS=BLOCKS, Came=CAME, Report=REPORT,
            StreamFIFO=TimedFIFO, Ram=ShownRam)(nodes)
        dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        time, self.again = Signal(BITS), Signal()
        self.cleared = Signal(range(self.places + 1))
        self.ready = ready = self.cleared == self.places
        m.d.sync += [time.eq(time + 1), self.again.eq(dut.came.valid),
                     self.cleared.eq(self.cleared + ~ready)]
        self.delay = delay = bench.constant(3, "delay")
        # Most cycles of a report, and most cycles from an event to its report.
        self.turn = 0 if patience is None else patience + 2
        self.most = delay + 3 + self.places * self.turn
        node = bench.free(name="node") if nodes > 1 else 0
        block, duplicate = bench.free(name="block"), bench.free(name="duplicate")
        m.d.comb += [
            dut.time.eq(time), dut.delay.eq(delay), dut.clearing.eq(self.cleared),
            dut.ready.eq(ready), dut.came.valid.eq(bench.free(name="came") & ready & ~self.again),
            dut.came.node.eq(node), dut.came.block.eq(block), dut.came.duplicate.eq(duplicate)]
        came, report = dut.came.valid, dut.reports.payload
        self.stalled = Signal(range((patience or 0) + 2))
        self.taken = taken = bench.sink(dut.reports, "reports", eager=(
            None if patience is None else self.stalled == patience))
        m.d.sync += self.stalled.eq(Mux(dut.reports.valid & ~taken, self.stalled + 1, 0))
        shown = Signal()
        m.d.sync += shown.eq(dut.reports.valid & ~taken)
        self.first = first = dut.reports.valid & ~shown
        self.shown = shown
        self.waits, self.forced = Signal(self.places), Signal(nodes)
        self.age = [Signal(BITS, name=f"age{k}") for k in range(self.places)]
        self.of = of = Cat(report.block, report.node)
        place = Cat(block, node)
        for k, age in enumerate(self.age):
            mine = came & (place == k)
            with m.If(first & (of == k)):
                m.d.sync += [self.waits[k].eq(mine), age.eq(1)]
            with m.Elif(mine & ~self.waits[k]):
                m.d.sync += [self.waits[k].eq(1), age.eq(1)]
            with m.Elif(age != LONGEST):
                m.d.sync += age.eq(age + 1)
        for k in range(nodes):
            with m.If(came & duplicate & (dut.came.node == k)):
                m.d.sync += self.forced[k].eq(1)
            with m.Elif(first & (report.node == k)):
                m.d.sync += self.forced[k].eq(0)
        bench.always("one", ~first | self.waits.bit_select(of, 1))
        bench.always("in_time", ~first | (Array(self.age)[of] >= delay))
        bench.always("forced", ~(first & self.forced.bit_select(report.node, 1)) | report.forced)
        bench.always("idle", ~dut.idle | ~(came | dut.reports.valid))
        bench.always("waits", ~dut.idle | (dut.waits == self.waits.any()))
        if patience is not None:
            bench.always("deadline", ~(dut.idle & dut.waits) | (
                (dut.deadline - time)[:BITS] - 1 < 7))
            for k, age in enumerate(self.age):
                bench.always(f"reported_{k}", ~self.waits[k] | (age <= self.most))

    def invariant(self) -> None:
        """State the queued blocks and their times, to make all statements inductive."""
        bench, dut, inner, ready = self.bench, self.dut, self.dut.inner, self.ready
        queue, of, first = self.parts.queue, self.of, self.first
        asked, answered, own = (
            getattr(self.parts, name).cells for name in ("asked", "answered", "own"))
        offered, reached = inner["offered"], inner["reached"]
        entries = [(place.held, Cat(place.item.block, place.item.node), place.item.due)
                   for place in (queue.front, *queue.places)]
        bench.always("queue", Cat(
            ~after.held | before.held for before, after in pairwise(queue.places)).all())
        bench.always("room", ~queue.i.valid | queue.i.ready)
        bench.always("cleared", (self.cleared <= self.places) & (ready | ~Cat(
            self.waits, self.forced, offered, reached, inner["forced"],
            [held for held, *_ in entries]).any()))
        bench.always("due", ~ready | (inner["later"] == (dut.time + self.delay - 1)[:BITS]))
        bench.always("shown", ~self.shown | offered)
        bench.always("nodes", Cat(
            ~held | (place < self.places) for held, place, _ in (
                *entries, (offered, of, None))).all())
        for k, age in enumerate(self.age):
            unsure = ~ready & (self.cleared <= k)
            queued = asked[k] != answered[k]
            bench.always(f"own_{k}", unsure | ((own[k] == answered[k]) & (
                ready | ~(asked[k] | answered[k]))))
            bench.always(f"queued_{k}", ~ready | (queued == sum(
                held & (place == k) for held, place, _ in entries)))
            bench.always(f"waits_{k}", ~ready | (
                self.waits[k] == queued + (first & (of == k))))
            for index, (held, place, due) in enumerate(entries):
                bench.always(f"due_{index}_{k}", ~(held & (place == k)) | (age == LONGEST) | (
                    due == (dut.time - age + self.delay - 1)[:BITS]))
        bench.always("reached", ~(reached & ~offered) | (queue.front.held & (
            Array(self.age)[entries[0][1]] >= self.delay)))
        for k in range(self.nodes):
            told = first & (dut.reports.payload.node == k)
            bench.always(f"forced_{k}", ~self.forced[k] | Mux(
                told, dut.reports.payload.forced, inner["forced"][k]))
        if self.turn:
            self._soon(entries, self.turn)

    def _soon(self, entries: list, turn: int) -> None:
        """State the remaining wait of the queued blocks, if a report takes ``turn`` cycles."""
        bench, inner, queue = self.bench, self.dut.inner, self.parts.queue
        offered, reached, front = inner["offered"], inner["reached"], queue.front
        ages = [Array(self.age)[place] for _, place, _ in entries]
        bench.always("stalled", (self.stalled <= turn - 2) & (
            self.shown == (self.stalled != 0)))
        # Cycles until the next block is taken from the queue, if it is due; then for each further
        # block.
        left = Mux(offered, turn - 1 - self.stalled, ~reached)
        bench.always("apart", Cat(~held | (age >= 2 - self.again)
                                  for (held, *_), age in zip(entries, ages, strict=True)).all())
        bench.always("new", front.held | ~queue.places[0].held | (ages[1] == 1))
        for index, (held, *_) in enumerate(entries):
            ahead = Mux(front.held, index, max(index - 1, 0))
            bench.always(f"soon_{index}", ~held | (
                ages[index] + left + ahead * turn < self.most))
            bench.always(f"before_its_time_{index}", ~held | reached | offered | (
                ages[index] <= self.delay + 2))
        for index, ((held, *_), (after, *_)) in enumerate(pairwise(entries)):
            bench.always(f"older_{index}", ~(held & after) | (ages[index] > ages[index + 1]))


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2])
def test_report_queue(nodes):
    made = Queued(nodes=nodes)
    made.invariant()
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("patience", [0, 1, 8])
def test_it_is_reported_soon(patience):
    made = Queued(patience=patience)
    made.invariant()
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


def test_it_gets_round():
    """The proof includes runs in which a block is reported for the third time."""
    made = Queued()
    bench, times = made.bench, Signal(2)
    bench.m.d.sync += times.eq(times + (made.taken & (made.of == 0)))
    bench.broken.clear()
    bench.always("reached", times != 3)
    verdict = prove(bench, depth=DEPTH)
    assert verdict.broken == ("reached",), verdict


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
    verdict = prove(Queued((old, new)).bench, depth=DEPTH)
    assert wrong in verdict.broken, verdict


@pytest.mark.parametrize("old, new, wrong", [
    ("later.eq(self.time + self.delay)", "later.eq(self.time + 2 * self.delay)", "reported_"),
    ("self.deadline.eq(head.due)", "self.deadline.eq(head.due + 7)", "deadline"),
], ids=["too-late", "deadline-too-late"])
def test_broken_times(old, new, wrong):
    bench = Queued((old, new), patience=0).bench
    bench.broken = {name: signal for name, signal in bench.broken.items() if wrong in name}
    verdict = prove(bench, depth=DEPTH)
    assert any(name.startswith(wrong) for name in verdict.broken), verdict


def test_broken_invariant():
    """The mutant fails only after time wraps; induction detects it."""
    made = Queued(("before.eq(passed[-1])", "before.eq(self.time < head.due)"))
    made.invariant()
    assert not by_induction(made.bench).holds
