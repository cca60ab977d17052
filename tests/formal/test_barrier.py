"""Proof of the step barrier: a step opens once, when every owner is done with the previous step.

Steps count modulo 2^16 in the hardware and modulo 2^3 here, so every fourth step clears tables.
There are up to three nodes.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.training.barrier import StepBarrier
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

BITS, NODES = 3, 3
DONE = data.StructLayout({"valid": 1, "source": 2, "step": BITS})
RECORD = data.StructLayout({"destination": 2, "step": BITS, "record": 64})


def barred(*edits: tuple[str, str]) -> Bench:
    """Return a bench of a barrier: own rows are written, and other nodes report, at any time.

    Reports of other nodes contain any step and any node. The skid buffers at the edges are wires.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        StepBarrier, *edits, STEP_BITS=BITS, NODE_BITS=2, _FORGET_BITS=BITS - 1, StepDone=DONE,
        OutgoingRecord=RECORD, SkidBuffer=Wires)(NODES)
    node, nodes = bench.constant(2, "node"), bench.constant(2, "nodes")
    # Constant inputs are valid, and no report arrives, in the cycle after reset.
    started = Signal()
    m.d.sync += started.eq(1)
    own, received, forgetting = bench.free(BITS, "own"), dut.received, bench.free(name="clears")
    m.d.comb += [dut.node.eq(node), dut.nodes.eq(nodes), dut.own.payload.eq(own),
                 dut.own.valid.eq(bench.free(name="written") & started),
                 received.valid.eq(bench.free(name="reports") & started),
                 received.source.eq(bench.free(2, "source")),
                 received.step.eq(bench.free(BITS, "step"))]
    # Tables are cleared from the cycle after ``forget`` on, for any time.
    pending, cleared = dut.forgetting, Signal()
    with m.If(dut.forget):
        m.d.sync += [pending.eq(1), cleared.eq(1)]
    with m.Elif(forgetting):
        m.d.sync += pending.eq(0)
    bench.assume(nodes != 0, node < nodes)
    told = bench.sink(dut.steps, "steps", Cat(
        dut.steps.payload.destination, dut.steps.payload.step))
    reported = bench.sink(dut.reports, "reports", dut.reports.payload.step)

    # A report counts for the step that is open in the cycle after its arrival.
    step, done, mine, sent = (Signal(BITS), Signal(NODES), Signal(), Signal(NODES))
    advances, came = Signal(), Signal(DONE)
    shown = dut.open_step
    m.d.sync += [came.eq(received), step.eq(shown)]
    m.d.comb += advances.eq(shown != step)
    counts = [came.valid & (came.source == n) & (came.step == shown) & (node != n) for n in
              range(NODES)]
    others = [(nodes > n) & (node != n) for n in range(NODES)]
    takes = dut.own.valid & dut.own.ready & (own == shown)
    m.d.sync += [*(done[n].eq((done[n] | counts[n]) & ~reported) for n in range(NODES)),
                 *(sent[n].eq((sent[n] | (told & (dut.steps.payload.destination == n))) & ~reported)
                   for n in range(NODES)),
                 mine.eq((mine | takes) & ~reported)]
    with m.If(takes & ~shown[:BITS - 1].all()):
        m.d.sync += cleared.eq(0)
    missing = Bench.any_of(others[n] & ~done[n] for n in range(NODES))
    untold = Bench.any_of(others[n] & ~sent[n] for n in range(NODES))
    bench.always("one_by_one", ~(advances & started) | (shown == (step + 1)[:BITS]))
    was_reported = Signal()
    m.d.sync += was_reported.eq(reported)
    bench.always("opens_once", ~started | (advances == was_reported))
    bench.always("not_early", ~reported | (mine & ~missing & ~untold
                                           & (dut.reports.payload.step == shown)))
    for n in range(NODES):
        to = told & (dut.steps.payload.destination == n)
        bench.always(f"told_{n}", ~to | (others[n] & ~sent[n] & mine
                                         & (dut.steps.payload.step == shown)))
        bench.always(f"written_{n}", ~started | ~dut.written[n] | Mux(node == n, mine, done[n]))
        bench.always(f"written_shown_{n}", ~(started & done[n] & others[n]) | dut.written[n])
    bench.always("to_a_node", ~told | (dut.steps.payload.destination < nodes))
    # Every fourth step the tables are cleared before any node is notified.
    bench.always("forgets", ~(told & shown[:BITS - 1].all()) | (cleared & ~pending))
    bench.always("forgets_seldom", ~dut.forget | shown[:BITS - 1].all())
    # Progress: counts cycles with room in which no table is being cleared.
    bench.within("tells", NODES + 1, mine & untold & dut.steps.ready & ~pending, told | pending)
    bench.within("opens", NODES + 2, mine & ~missing & dut.steps.ready & dut.reports.ready
                 & ~pending, reported | pending | told)
    bench.within("takes", 1, dut.own.valid & ~mine & started, takes | (own != shown))
    bench.always("idle", ~dut.idle | ~Cat(dut.steps.valid, dut.reports.valid).any())
    return bench


def test_barrier():
    verdict = prove(barred())
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("old, new, what", [
    ("self_done & (done | ~others).all()", "(done | ~others).all()", "not_early"),
    ("self_done & (done | ~others).all()", "self_done", "not_early"),
    ("Mux(step == self.open_step, named & ~done, 0)", "named", ("written_", "not_early")),
    ("done.eq(done | new)", "done.eq(new)", "written_shown"),
    ("m.d.sync += [done.eq(0), self_done.eq(0)", "m.d.sync += [self_done.eq(0)", "written_"),
    ("with m.Elif(clears):", "with m.Elif(0):", "forgets"),
    ("with m.If(~self.forgetting):", "with m.If(1):", "forgets"),
    ("steps.i.valid.eq(~is_here)", "steps.i.valid.eq(1)", "told_"),
    ("with m.If(turns & is_final):", "with m.If(turns):", "not_early"),
    ("complete & reports.i.ready", "complete", "reports_holds"),
    ("turns.eq(1), following.eq(0)", "turns.eq(1), following.eq(1)", "told_"),
    ("low == (1 << _FORGET_BITS) - 2", "low.all()", "forgets"),
], ids=["without-own", "without-others", "any-step", "report-lost", "reports-kept",
        "never-forgets", "in-haste", "tells-itself", "tells-one", "opens-unreported",
        "not-the-first", "forgets-late"])
def test_broken_barrier(old, new, what):
    verdict = prove(barred((old, new)))
    assert any(name.startswith(what) for name in verdict.broken), verdict
