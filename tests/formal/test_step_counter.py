"""Proof of the step counter: a step is complete once all announced partials have arrived, within a
bounded time.

Counts have 32 bits in the hardware and two here, steps 16 and two; a beat has two records instead
of eight; there are at most two nodes. An END may announce more partials than have arrived by the
values of some bits: 17 in the hardware; here two, which allows any count, or zero, which allows one
more.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.formats import StepKind
from rtl.training.step_counter import StepCounter
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

STEP, COUNT, NODES, NODE, RECORDS = 2, 2, 2, 2, 2
RECORD = data.StructLayout({"count": COUNT, "kind": 2})
BEAT = data.StructLayout(
    {"data": RECORDS * RECORD.size, "records": 2, "source": NODE, "step": STEP})
END = data.StructLayout({"step": STEP, "count": COUNT})
EVENT = data.StructLayout({"valid": 1, "source": NODE, "step": STEP})
SOON = 6 + 2 * NODES
"""Most cycles from the last event to its report, as in the block's latency."""


def counted(*edits: tuple[str, str], ahead: int = COUNT) -> Bench:
    """Return a bench of a counter with free announcements and events, but never too early.

    No node sends data of a step before the step has opened here (docs/training.md). Data of earlier
    steps may arrive at any time, and all data may arrive twice. No node sends more than a count can
    express. An announcement is ignored if its bits above the lowest ``ahead`` exceed those of the
    arrived count by more than one.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        StepCounter, *edits, STEP_BITS=STEP, NODE_BITS=NODE, RECORD_BITS=RECORD.size,
        RECORDS_PER_BEAT=RECORDS, RecordBeat=BEAT, StepRecord=RECORD, _COUNT_BITS=COUNT,
        _AHEAD_BITS=ahead, StepEnd=END, PartialArrived=EVENT, StepDone=EVENT)(NODES)
    node, nodes, busy = (bench.constant(NODE, "node"), bench.constant(NODE, "nodes"),
                         bench.free(name="busy"))
    swept = Signal(range(NODES + 1))
    m.d.sync += swept.eq(Mux(swept == NODES, NODES, swept + 1))
    ready, step = swept == NODES, dut.open_step
    beat, end = dut.steps.payload, dut.own_end.payload
    m.d.comb += [
        dut.node.eq(node), dut.nodes.eq(nodes), dut.busy.eq(busy),
        dut.steps.valid.eq(bench.free(name="beat") & ready),
        beat.eq(bench.free(BEAT.size, "said")),
        dut.own_end.valid.eq(bench.free(name="ends") & ready), end.eq(bench.free(END.size, "end"))]
    for event in (dut.arrived, dut.own_arrived):
        m.d.comb += [event.valid.eq(bench.free(name="arrives") & ready),
                     event.source.eq(bench.free(NODE, "source")),
                     event.step.eq(bench.free(STEP, "of"))]
    records = [data.View(RECORD, beat.data.word_select(k, RECORD.size)) for k in range(RECORDS)]

    def says(kind: StepKind) -> list:
        return [dut.steps.valid & (k < beat.records) & (record.kind == kind)
                for k, record in enumerate(records)]

    # Announced and arrived: for this node by its own events, for others by records and partials.
    ends, taken = says(StepKind.END), bench.sink(dut.complete, "complete")
    ended, announced, come = (
        [Signal(bits, name=f"{name}{n}") for n in range(NODES)]
        for name, bits in (("ended", 1), ("announced", COUNT), ("come", COUNT)))
    bounded = []
    for n in range(NODES):
        mine = node == n
        ending = (beat.step == step) & (beat.source == n) & (ends[0] | ends[1]) & ~mine | (
            mine & dut.own_end.valid & (end.step == step))
        said = Mux(mine, end.count, Mux(ends[0], records[0].count, records[1].count))
        more = Mux(mine, dut.own_arrived.valid & (dut.own_arrived.step == step),
                   dut.arrived.valid & (dut.arrived.step == step) & (dut.arrived.source == n))
        bounded.append(~more | (come[n] != (1 << COUNT) - 1))
        able = mine | ((said >> ahead) <= ((come[n] + more) >> ahead) + 1)
        with m.If(taken):
            m.d.sync += [ended[n].eq(0), announced[n].eq(0), come[n].eq(0)]
        with m.Else():
            m.d.sync += [ended[n].eq(ended[n] | (ending & able)), come[n].eq(come[n] + more)]
            with m.If(ending & able & ~ended[n]):
                m.d.sync += announced[n].eq(said)
    later = (step + 1)[:STEP]
    bench.assume(
        nodes != 0, nodes <= NODES, node < nodes, *bounded, ~dut.steps.valid | (beat.step != later),
        ~dut.own_end.valid | (end.step != later),
        *(~event.valid | (event.step != later) for event in (dut.arrived, dut.own_arrived)))
    whole = ~bench.any_of((nodes > n) & ~(ended[n] & (come[n] >= announced[n]))
                          for n in range(NODES))
    shown = dut.complete.valid
    bench.always("not_early", ~shown | (whole & (dut.complete.payload == step)))
    before, was, done, still = Signal(), Signal(), Signal(STEP), Signal()
    m.d.sync += [before.eq(shown), was.eq(taken), done.eq(step), still.eq(busy)]
    bench.always("none_on_its_way", ~(shown & ~before) | ~still)
    bench.always("opens", ~was | (step == (done + 1)[:STEP]))
    bench.always("stays_open", was | (step == done))
    # A count changes while partials arrive; their number is finite.
    calm = Signal(2)
    m.d.sync += calm.eq(Cat(~dut.arrived.valid, calm))
    bench.within("soon", SOON, whole & ~busy & calm.all(), shown)
    # DONE reports of other nodes pass in three cycles.
    passed = Signal(EVENT, name="told")
    m.d.comb += passed.eq(Cat(bench.any_of(says(StepKind.DONE)), beat.source, beat.step))
    for k in range(3):
        behind = Signal(EVENT, name=f"behind{k}")
        m.d.sync += behind.eq(passed)
        passed = behind
    bench.always("done", (dut.done.valid == passed.valid)
                 & (~passed.valid | (dut.done == passed)))
    bench.always("idle", ~dut.idle | ~Cat(shown, dut.done.valid).any())
    bench.always("idle_when_told", ~(dut.idle & whole & ready))
    return bench


DEPTH = 18


@pytest.mark.parametrize("depth, ahead", [
    (DEPTH, COUNT), (DEPTH, 0), pytest.param(None, COUNT, marks=pytest.mark.slow)])
def test_step_counter(depth, ahead):
    """Without a bound the proof takes some minutes, for any count."""
    verdict = prove(counted(ahead=ahead), depth=depth, seconds=1800)
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("old, new, what", [
    ("(here >= wanted)", "(here + 1 >= wanted)", "not_early"),
    ("is_ended & (here >= wanted)", "here >= wanted", "not_early"),
    ("is_ended & (here >= wanted)", "is_ended", "not_early"),
    ("step == self.open_step", "1", "not_early"),
    ("with m.If(~self.busy):", "with m.If(1):", "none_on_its_way"),
    ("ended.eq(0), own_ended.eq(0)", "own_ended.eq(0)", "not_early"),
    ("own_ended.eq(0), own_count.eq(0)", "own_ended.eq(0)", "not_early"),
    ("take.arrival | wipe", "take.arrival", "not_early"),
    ("Mux(take.arrival, added.read_data + 1, 0)", "Mux(take.arrival, added.read_data + 2, 0)",
     "not_early"),
    ("Mux(take.arrival, arrival.source, place)", "place", "soon"),
    ("(later | (behind & ~enough))", "later", "soon"),
    ("ends[k] & ~ends[:k].any()", "ends[k]", "soon"),
    ("place == self.nodes - 1", "place == 0", "not_early"),
    ("dones.any()", "dones[0]", "done"),
    ("moving.eq(~calm.all() | enough)", "moving.eq(enough)", "idle_when_told"),
    ("< most) & ~beyond", "< most)", "not_early"),
    ("coming.count[_AHEAD_BITS:] > coming.most", "coming.count[_AHEAD_BITS:] > coming.most + 1",
     "not_early"),
    ("said.most.eq(before.read_data[_AHEAD_BITS:] + 1)", "said.most.eq(1)", "soon"),
    ("said.most.eq(before.read_data[_AHEAD_BITS:] + 1)",
     "said.most.eq(before.read_data[_AHEAD_BITS:])", "soon"),
], ids=["one-short", "before-the-end", "uncounted", "any-step", "in-haste", "end-kept",
        "count-kept", "never-cleared", "twice", "lost", "last-lost", "two-ends", "first-node",
        "second-record", "idle-too-soon", "any-count", "one-too-many", "bound-stays",
        "one-too-few"])
def test_broken_step_counter(old, new, what):
    ahead = 0 if "beyond" in old or "_AHEAD_BITS" in old else COUNT
    verdict = prove(counted((old, new), ahead=ahead), depth=2 * DEPTH)
    assert set(verdict.broken) & {what, "not_early", "idle_when_told"}, verdict
