"""Proof of the segment store: exactly the committed segments leave, once and in order."""

import pytest
from amaranth.hdl import Mux, Signal, Value

from rtl.bags.store import SegmentStore
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant


def segments(store: type, depth: int) -> Bench:
    """Return a bench that counts segments, independent of pointers and RAM."""
    bench = Bench()
    m, dut = bench.m, store(depth, 1)
    m.submodules.dut = dut
    entered, left = bench.source(dut.i), bench.sink(dut.o, "o")
    m.d.comb += [dut.commit.eq(bench.free(name="commit")), dut.revoke.eq(bench.free(name="revoke"))]
    # Segments since the last commit or revoke, with the present one; committed segments inside.
    open_, after, inside = Signal(range(depth + 3)), Signal(range(depth + 3)), Signal(
        range(2 * depth + 4))
    bench.assume(~(dut.commit & dut.revoke), after <= depth)
    m.d.comb += after.eq(open_ + entered)
    m.d.sync += [open_.eq(Mux(dut.commit | dut.revoke, 0, after)),
                 inside.eq(inside + Mux(dut.commit, after, 0) - left)]
    bench.always("bounded", inside <= depth + 1)
    bench.always("none_invented", ~left | (inside != 0))
    bench.always("idle", ~dut.idle | ((inside == 0) & ~dut.o.valid))

    # Any one segment is followed: it leaves if it is committed, after those inside before it.
    picked, waiting = Signal(), Signal()
    kept, place, ahead = Signal(len(Value.cast(dut.i.payload))), Signal.like(open_), Signal.like(
        inside)
    pick = Signal()
    m.d.comb += pick.eq(entered & ~picked & ~waiting & bench.free(name="pick"))
    with m.If(pick):
        m.d.sync += [picked.eq(1), kept.eq(dut.i.payload), place.eq(open_)]
    with m.If(waiting):
        m.d.sync += [ahead.eq(ahead - left), waiting.eq(~(left & (ahead == 0)))]
    with m.Elif((picked | pick) & (dut.commit | dut.revoke)):
        m.d.sync += [picked.eq(0), waiting.eq(dut.commit),
                     ahead.eq(inside + Mux(pick, open_, place) - left)]
    bench.always("in_order", ~(waiting & left & (ahead == 0))
                 | (Value.cast(dut.o.payload) == kept))

    # Committed segments leave, and the store takes segments while it has room.
    paused = Signal()
    m.d.sync += paused.eq(dut.revoke)
    bench.within("leaves", 2, dut.o.ready & (inside != 0), left)
    bench.always("takes", dut.i.ready | paused | (inside + open_ >= depth))
    return bench


@pytest.mark.parametrize("depth", [2, 3])
def test_segment_store(depth):
    verdict = prove(segments(SegmentStore, depth))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("tail.eq(start)", "tail.eq(tail)"),
    ("Mux(revokes, ready_level == depth, full)", "full"),
    ("Mux(revokes, ready_level == depth, full)", "(full & ~revokes)"),
    ("start.eq(tail)", "start.eq(start)"),
    ("~full & ~revokes", "~full"),
    ("pull.eq(some ", "pull.eq((level != 0) "),
    ("Mux(revokes, ready_level, level)", "level"),
    ("Mux(commits, level, ready_level) - pull", "ready_level - pull"),
], ids=["not-taken-back", "stays-full", "never-full", "old-start", "written-over", "shown-early",
        "places-lost", "never-committed"])
def test_broken_segment_store(old, new):
    assert not prove(segments(variant(SegmentStore, (old, new)), 3)).holds
