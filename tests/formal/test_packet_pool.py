"""Proof of the packet pool, bounded: items of a packet are of one destination, in places of their
own, and each packet closes once, full or in time.

Times have 32 bits in the hardware and four here; there are two destinations, and three buffers of
two positions. A unit has one item or two.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.network.packet_pool import PacketPool
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO

DESTINATIONS, BUFFERS, POSITIONS, TIME = 2, 3, 2, 4
LATE = DESTINATIONS + 2 + BUFFERS
"""Cycles until a closed packet is told: a look at each destination, the queue, those before it."""
PLACED = 6
BUFFER = data.StructLayout({"filling": 1, "closed": 1, "destination": 1, "step": 1, "middle": 1,
                            "units": 2, "positions": 2, "age": TIME})


def pooled(*edits: tuple[str, str], match: bool, soon: bool = False) -> Bench:
    """Return a bench that offers items, reads packets and frees their buffers at any time.

    ``match``: a packet has units of one step. ``soon``: state how soon things happen, too.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        PacketPool, *edits, ("ages = Ram(32, n", f"ages = Ram({TIME}, n"),
        ("age, bits = Signal(32,", f"age, bits = Signal({TIME},"),
        ('"time": In(32), "timeout": In(16)', f'"time": In({TIME}), "timeout": In({TIME})'),
        NODE_BITS=1, STEP_BITS=1, StreamFIFO=ShortFIFO)(
            DESTINATIONS, BUFFERS, POSITIONS, match_step=match)
    timeout, limit, two = (bench.constant(2, "timeout"), bench.constant(2, "limit"),
                           bench.constant(1, "two"))
    time, begin = Signal(TIME), bench.constant(1, "begin")
    m.d.sync += time.eq(time + 1)
    # What is fixed is known in the cycle after reset.
    started = Signal()
    m.d.sync += started.eq(1)
    offers, item = bench.free(name="offers"), bench.free(2, "item")
    # The second item of a unit is of the same destination and step.
    second, kept, offered = Signal(), Signal(2), Signal(data.StructLayout({
        "destination": 1, "step": 1, "last": 1}))
    taken = dut.take & dut.valid
    m.d.comb += [
        dut.time.eq(time + begin), dut.timeout.eq(timeout), dut.limit.eq(limit),
        offered.eq(Cat(Mux(second, kept, item), ~two | second)), dut.valid.eq(offers & started),
        dut.destination.eq(offered.destination), dut.step.eq(offered.step),
        dut.last.eq(offered.last)]
    with m.If(taken):
        m.d.sync += [second.eq(two & ~second), kept.eq(offered)]
    # Units fit into a buffer; so do as many as are allowed.
    bench.assume((limit << two) <= POSITIONS)
    inside, mine = Signal(), Signal.like(offered)
    with m.If(dut.ready | taken):
        m.d.sync += inside.eq(taken)
    with m.If(taken):
        m.d.sync += mine.eq(offered)
    bench.always("one_inside", ~(taken & inside) | dut.ready)
    bench.always("its_own", ~dut.ready | inside)
    bench.always("vacant", dut.vacant == (~inside | dut.ready))

    buffers = [Signal(BUFFER, name=f"buffer{k}") for k in range(BUFFERS)]
    shown = dut.closed.payload
    out = bench.sink(dut.closed, "closed", Cat(
        shown.destination, shown.buffer, shown.units, shown.positions))
    freed, frees, begins = bench.free(range(BUFFERS), "freed"), Signal(), dut.position == 0
    gone = [(freed == k) & buffer.closed for k, buffer in enumerate(buffers)]
    m.d.comb += [frees.eq(bench.free(name="frees") & bench.any_of(gone)),
                 dut.freed.valid.eq(frees), dut.freed.buffer.eq(freed)]
    most = Mux(limit == 0, 1, limit)
    good, told, due, reason = [], [], [], []
    for k, buffer in enumerate(buffers):
        here, ends = dut.ready & (dut.buffer == k), out & (shown.buffer == k)
        same = (buffer.destination == mine.destination) & (~match | (buffer.step == mine.step))
        good.append(here & Mux(begins, ~buffer.filling & ~buffer.closed & (dut.unit == 0), (
            buffer.filling & same & (buffer.positions == dut.position)
            & (buffer.units == dut.unit) & (buffer.units < most))))
        told.append((shown.buffer == k) & buffer.filling & ~buffer.middle
                    & (buffer.units != 0) & (shown.units == buffer.units)
                    & (shown.positions == buffer.positions)
                    & (shown.destination == buffer.destination)
                    & (~match | (shown.step == buffer.step)))
        # Why: it is full, it was old enough when it closed, or a unit of another step came.
        reason.append((shown.buffer != k) | (buffer.units == most) | (buffer.age >= timeout + 2)
                      | match)
        due.append(buffer.filling & ~buffer.middle & (
            (buffer.units == most) | (buffer.age >= timeout + 1)))
        with m.If(here):
            m.d.sync += [
                buffer.filling.eq(1), buffer.destination.eq(mine.destination),
                buffer.middle.eq(~mine.last), buffer.positions.eq(dut.position + 1),
                buffer.units.eq(dut.unit + mine.last)]
            with m.If(begins):
                m.d.sync += buffer.step.eq(mine.step)
        with m.If(here & begins):
            m.d.sync += buffer.age.eq(1)
        with m.Elif(~buffer.age.all()):
            m.d.sync += buffer.age.eq(buffer.age + 1)
        with m.If(ends):
            m.d.sync += [buffer.filling.eq(0), buffer.closed.eq(1)]
        with m.If(frees & (freed == k)):
            m.d.sync += buffer.closed.eq(0)
    bench.always("place", ~dut.ready | bench.any_of(good))
    bench.always("fits", ~dut.ready | (dut.position < POSITIONS))
    bench.always("what_is_told", ~dut.closed.valid | bench.any_of(told))
    bench.always("for_a_reason", ~out | Cat(reason).all())
    bench.always("idle", ~dut.idle | ~(inside | bench.any_of(
        buffer.filling for buffer in buffers)))
    if soon:
        for k in range(BUFFERS):
            bench.within(f"closes_{k}", LATE, due[k] & dut.closed.ready, out & (shown.buffer == k))
        free = bench.any_of(~buffer.filling & ~buffer.closed for buffer in buffers)
        bench.within("placed", PLACED, inside & free & ~dut.closed.valid, dut.ready)
    return bench


DEPTH = 14
"""Cycles that are searched: enough for a buffer's second use."""


@pytest.mark.parametrize("match", [False, True], ids=["any-step", "one-step"])
def test_packet_pool(match):
    verdict = prove(pooled(match=match), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.parametrize("match", [False, True], ids=["any-step", "one-step"])
def test_nothing_is_kept_back(match):
    verdict = prove(pooled(match=match, soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("match, soon, old, new, what", [
    (False, False, "& ~(expiring & (late_index == target))", "", "place"),
    (False, False, "splits.eq(Mux(self.ready, ~item.last, middle))", "splits.eq(0)",
     "what_is_told"),
    (False, False, "state.eq(Mux(same, updated, found))", "state.eq(found)", "place"),
    (False, False, "found.units >= but_one", "found.units >= self.limit", "place"),
    (False, False, "(age >= self.timeout)", "1", "for_a_reason"),
    (False, False, "Mux(opening & (next_look == item.destination), 1,", "Mux(0, 1,",
     "for_a_reason"),
    (False, False, "late.eq(0), opened.bit_select(late_index, 1).eq(0)", "late.eq(0)",
     "what_is_told"),
    (True, False, "(~same & (self.step != found.step))", "0", "place"),
    (True, False, "Mux(other_step, state[name], updated[name])", "updated[name]", "what_is_told"),
    (False, True, "look.eq(self.time[:bits])", "look.eq(0)", "closes_"),
], ids=["into-one-that-closes", "split", "place-twice", "over-the-limit", "at-once", "old-age",
        "twice", "any-step", "counts-of-another", "never-looked-at"])
def test_broken_packet_pool(match, soon, old, new, what):
    verdict = prove(pooled((old, new), match=match, soon=soon), depth=DEPTH)
    assert any(name.startswith((what, "what_is_told", "for_a_reason"))
               for name in verdict.broken), verdict
