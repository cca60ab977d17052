"""Proof of the step table: each opened step finishes once, when all of it has left."""

import pytest
from amaranth.hdl import C, Mux, Signal
from amaranth.lib import data

from rtl.rings.step_table import StepTable
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO
from tests.mutants import variant

SLOTS, STEP, COUNT, TIME = 2, 1, 2, 4
ANSWERED = data.StructLayout({"valid": 1, "step": STEP, "count": COUNT})
ERROR = data.StructLayout({"valid": 1, "step": STEP, "status": 1})


def table(*edits: tuple[str, str], soon: bool = False, late: bool = True) -> Bench:
    """Return a bench in which any one step is followed from its opening until its release.

    Steps, counts and times are narrow. Events occur at any time, of any step.

    soon: also state time bounds.
    late: steps may be late.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        StepTable, *edits, STEP_BITS=STEP, AnsweredStep=ANSWERED, StepError=ERROR,
        StreamFIFO=ShortFIFO, _SAMPLE_BITS=COUNT, _TIMED_OUT=1 << COUNT, _LEFT_BITS=5,
        _TIME_BITS=TIME, _STATUS_BITS=1)(SLOTS)
    answered, error = dut.answered, dut.error
    # A timeout is at most half of the range of times, so each round of checks detects it.
    now, timeout = Signal(TIME), bench.constant(TIME, "timeout") if late else C(0, TIME)
    m.d.sync += now.eq(now + 1)
    m.d.comb += [answered.eq(bench.free(ANSWERED.size, "answered")),
                 error.eq(bench.free(ERROR.size, "error")),
                 dut.time.eq(now), dut.timeout.eq(timeout), dut.room.eq(bench.free(name="room"))]
    m.d.comb += [dut.open.valid.eq(bench.free(name="open")),
                 dut.open.slot.eq(bench.free(1, "open_slot")),
                 dut.open.step.eq(bench.free(STEP, "open_step")),
                 dut.open.samples.eq(bench.free(COUNT, "samples"))]
    left = bench.sink(dut.finished, "finished")

    # A slot is released after it was finished.
    gone = Signal(SLOTS)
    m.d.comb += [dut.slot.eq(bench.free(1, "slot")),
                 dut.release.eq(bench.free(name="release") & gone.bit_select(dut.slot, 1))]
    # The event that was checked: it is accepted or rejected three cycles later.
    opened = Signal(data.StructLayout({"slot": 1, "step": STEP, "samples": COUNT}))
    with m.If(dut.taken):
        m.d.sync += [opened[name].eq(dut.open[name]) for name in ("slot", "step", "samples")]
    # Proved of the user that opens steps: the slot is not held.
    bench.assume(~dut.accepted | ~dut.held.bit_select(opened.slot, 1), timeout <= 1 << (TIME - 1))
    due = Signal(3)
    m.d.sync += due.eq((due << 1) | dut.taken)
    bench.always("told", (dut.accepted | dut.refused) == due[2])
    bench.always("told_once", ~(dut.accepted & dut.refused))

    # One accepted step is followed.
    held, slot, step, rest = Signal(), Signal(1), Signal(STEP), Signal(COUNT)
    picks = dut.accepted & ~held & bench.free(name="pick")
    done, elapsed, since, failed, status = (
        Signal(), Signal(), Signal(TIME), Signal(), Signal())
    of = Mux(held, step, opened.step)
    counts = answered.valid & (answered.step == of) & (held | picks)
    before = Mux(held, rest, opened.samples)
    after = Signal(COUNT)
    m.d.comb += after.eq(Mux(counts, Mux(answered.count >= before, 0, before - answered.count),
                             before))
    fails = error.valid & (error.step == of) & (held | picks)
    released = dut.release & (dut.slot == slot) & held
    with m.If(picks):
        m.d.sync += [held.eq(1), slot.eq(opened.slot), step.eq(opened.step), done.eq(0),
                     elapsed.eq(0), since.eq(now), failed.eq(fails), status.eq(error.status)]
    with m.Elif(released):
        m.d.sync += held.eq(0)
    with m.Elif(fails & ~failed):
        # An event after the last answer may count or not.
        m.d.sync += [failed.eq(1), status.eq(error.status)]
    in_time = Signal()
    with m.If(picks):
        m.d.sync += in_time.eq(fails)
    with m.Elif(fails & ~failed):
        m.d.sync += in_time.eq((rest != 0) & ~done)
    m.d.sync += rest.eq(after)
    with m.If(held & (timeout != 0) & ((now - since)[:TIME] >= timeout)):
        m.d.sync += elapsed.eq(1)
    mine = left & (dut.finished.payload == slot) & held
    with m.If(mine):
        m.d.sync += done.eq(1)
    for k in range(SLOTS):
        with m.If(left & (dut.finished.payload == k)):
            m.d.sync += gone[k].eq(1)
        with m.If(dut.release & (dut.slot == k)):
            m.d.sync += gone[k].eq(0)
        bench.always(f"held_{k}", ~(left & (dut.finished.payload == k)) | dut.held[k])
    shown = dut.finished.valid & (dut.finished.payload == slot) & held & ~picks
    bench.always("not_early", ~shown | (rest == 0) | elapsed)
    bench.always("once", ~(mine & done))
    bench.always("never_before", ~(left & (dut.finished.payload == opened.slot) & due[2]
                                   & dut.accepted))
    bench.always("keeps", ~held | dut.held.bit_select(slot, 1))
    bench.always("one_of_a_number", ~(held & dut.accepted & ~picks) | (opened.step != step))
    bench.always("refused_for_something", ~(dut.refused & ~dut.doubled & held & (
        opened.step == step)))
    asked = held & (dut.slot == slot)
    bench.always("step", ~asked | (dut.step == step))
    bench.always("status", ~(asked & done & failed & in_time & ~elapsed) | (dut.status == status))
    bench.always("no_status", ~(asked & ~failed) | (dut.status == 0))
    bench.always("idle", ~dut.idle | ~dut.finished.valid)
    bench.always("late", ~(asked & dut.late) | elapsed)
    # A finished step leaves, at most behind the other one; a late step leaves as soon as no other
    # does.
    if not soon:
        return bench
    bench.within("finishes", 8, held & ~done & (rest == 0) & dut.finished.ready, mine | ~held)
    quiet = ~answered.valid & ~dut.open.valid & dut.finished.ready
    bench.within("expires", 24, held & ~done & elapsed & quiet, mine | ~held)
    bench.within("opens", 4, dut.open.valid & ~answered.valid, dut.taken | ~dut.open.valid)
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_step_table(late):
    verdict = prove(table(late=late), seconds=1200)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_lost(late):
    verdict = prove(table(soon=True, late=late), depth=18)
    assert verdict.holds, verdict


MUTANTS = [
    ("(kind[3].opens | ~old[-1]) & rest[-1]", "rest[-1]", "once"),
    ("(kind[3].opens | ~old[-1]) & rest[-1]", "(kind[3].opens | ~old[-1])", "not_early"),
    ("(kind[3].opens | ~old[-1]) & rest[-1]", "~old[-1] & rest[-1]", "finishes"),
    ("(counting | self._bit(opens, event.slot)) & ~ends", "counting | self._bit(opens, event.slot)",
     "once"),
    ("accept.eq(kind[2].opens & ~held.any() & room)", "accept.eq(kind[2].opens & room)",
     "one_of_a_number"),
    ("new.eq(hits & ~failed)", "new.eq(hits)", "status"),
    ("age >= self.timeout", "age + 4 >= self.timeout", "late"),
    ("(late | self._bit(found, slot)) & ~self._bit(opens, event.slot)",
     "late | self._bit(found, slot)", "late"),
    ("with m.Elif(~counting.bit_select(expiry.slot, 1)):", "with m.Elif(0):", "not_early"),
    ("& ~self.answered.valid & ~self.taken", "& ~self.taken", "finishes"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize("old, new, what", MUTANTS, ids=[
    "twice", "at-once", "none-to-come", "still-counting", "doubled", "last-error", "early",
    "late-for-ever", "old-time-out", "answer-lost"])
def test_broken_step_table(old, new, what):
    # Liveness statements are broken within some cycles.
    soon = what == "finishes"
    verdict = prove(table((old, new), soon=soon), depth=18 if soon else None, seconds=900)
    assert not verdict.holds, what
