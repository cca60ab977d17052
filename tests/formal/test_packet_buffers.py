"""Proof of the packet pool's buffers, without bound: each has exactly one location, so the pool
keeps all of them.

A buffer is not yet swept in after reset, free, open for a destination, closed and unread, or with
its sender. If a buffer is in one of the first four states, an item that waits for a buffer gets
one. There are two destinations and three buffers of two positions, with timeouts at any time. The
two queues output their items at any time, an over-approximation of a queue (``test_streams``).

:mod:`~tests.formal.test_packet_pool` proves the positions of items and the reasons for closing.
"""

import pytest
from amaranth.hdl import C, Cat, Signal
from amaranth.lib import data

from rtl.network.packet_pool import PacketPool
from tests.formal.bench import Bench
from tests.formal.plain import PlainFIFO
from tests.formal.prove import prove
from tests.mutants import variant

DESTINATIONS, BUFFERS, POSITIONS = 2, 3, 2
BITS = 2
TIME = 1
DEPTH = 16


def pooled(*edits: tuple[str, str], match: bool) -> Bench:
    """Return a bench that offers items, takes packets and frees their buffers at any time."""
    bench = Bench()
    m = bench.m
    shows = Signal()
    m.d.comb += shows.eq(bench.free(name="shows"))

    class Queue(PlainFIFO):
        SHOWS = shows

    dut = variant(
        PacketPool, *edits, ("ages = Ram(32, n", f"ages = Ram({TIME}, n"),
        ("age, bits = Signal(32,", f"age, bits = Signal({TIME},"),
        ('"time": In(32), "timeout": In(16)', f'"time": In({TIME}), "timeout": In({TIME})'),
        NODE_BITS=1, STEP_BITS=1, StreamFIFO=Queue)(
            DESTINATIONS, BUFFERS, POSITIONS, match_step=match)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    free, closed = m.submodules.dut.submodules.free, m.submodules.dut.submodules.closed
    states = m.submodules.dut.submodules.states
    m.d.comb += [
        dut.valid.eq(bench.free(name="offers")), dut.destination.eq(bench.free(name="destination")),
        dut.step.eq(bench.free(name="step")), dut.last.eq(bench.free(name="last")),
        dut.time.eq(bench.free(TIME, "time")), dut.timeout.eq(bench.free(TIME, "timeout")),
        dut.limit.eq(bench.free(2, "limit")), dut.closed.ready.eq(bench.free(name="ready"))]

    # Locations: buffers with a sender, and the open buffer of each destination.
    sent, taken = Signal(BUFFERS), dut.closed.valid & dut.closed.ready
    given = bench.free(range(BUFFERS), "given")
    m.d.comb += [
        dut.freed.valid.eq(bench.free(name="frees") & sent.bit_select(given, 1)),
        dut.freed.buffer.eq(given)]
    with m.If(dut.freed.valid):
        m.d.sync += sent.bit_select(given, 1).eq(0)
    with m.If(taken):
        m.d.sync += sent.bit_select(dut.closed.payload.buffer, 1).eq(1)
    inside, of = Signal(), Signal()
    with m.If(dut.ready | dut.take):
        m.d.sync += inside.eq(dut.take & dut.valid)
    with m.If(dut.take):
        m.d.sync += of.eq(dut.destination)
    opened = [Signal(data.StructLayout({"valid": 1, "buffer": BITS}), name=f"open{d}")
              for d in range(DESTINATIONS)]
    closes, place = closed.i.valid, closed.i.payload
    for d, each in enumerate(opened):
        with m.If(dut.ready & (of == d)):
            m.d.sync += [each.valid.eq(~dut.full), each.buffer.eq(dut.buffer)]
        with m.Elif(closes & (place.destination == d)):
            m.d.sync += each.valid.eq(0)
    swept = Signal(range(BUFFERS + 1))
    m.d.sync += swept.eq(swept + (swept != BUFFERS))
    for k in range(BUFFERS):
        bench.always(f"one_place_{k}", sum([
            swept <= k, sent[k], *(each.valid & (each.buffer == k) for each in opened),
            *(at.held & (at.item == k) for at in free.places),
            *(at.held & (at.item.buffer == k) for at in closed.places)], C(0)) == 1)
    bench.always("room", free.room & closed.room)
    # A closing buffer was open, or opens full.
    bench.always("closes", ~closes | dut.full | Cat(
        each.valid & (each.buffer == place.buffer) & (place.destination == d)
        for d, each in enumerate(opened)).any())
    bench.always("placed", ~dut.ready | (inside & Cat(
        (of == d) & (~each.valid | (each.buffer == dut.buffer))
        for d, each in enumerate(opened)).any()))
    bench.always("starved", ~dut.starved | ~(free.places[0].held & shows))
    # The state of an open buffer contains its number.
    layout = data.StructLayout({"step": 1, "buffer": BITS, "units": 2, "positions": 2})
    written = [Signal(BITS, name=f"written{d}") for d in range(DESTINATIONS)]
    for d, each in enumerate(written):
        with m.If(states.write_en & (states.write_addr == d)):
            m.d.sync += each.eq(data.View(layout, states.write_data).buffer)
        bench.always(f"state_{d}", ~opened[d].valid | (each == opened[d].buffer))
    return bench


@pytest.mark.parametrize("match", [False, True], ids=["any-step", "one-step"])
def test_packet_buffers(match):
    verdict = prove(pooled(match=match), seconds=900)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("match, old, new", [
    (True, "other_step | ((is_open | free.valid) & last_of_all)",
     "~other_step & (is_open | free.valid) & last_of_all"),
    (False, "closed.i.payload.buffer.eq(Mux(expiring, overdue.buffer, self.buffer))",
     "closed.i.payload.buffer.eq(self.buffer)"),
    (False, "late.eq(0), opened.bit_select(late_index, 1).eq(0)", "late.eq(0)"),
    (False, "& ~(expiring & (late_index == target))", ""),
    (False, "free.ready.eq(self.ready & ~is_open)", "free.ready.eq(self.ready)"),
    (False, "free.ready.eq(self.ready & ~is_open)", "free.ready.eq(~is_open)"),
    (False, "free.i.valid.eq(freed.valid | ~swept)", "free.i.valid.eq(~swept)"),
    (False, "swept.eq(sweep == buffers - 1)", "swept.eq(sweep == buffers - 2)"),
    (False, "updated.buffer.eq(self.buffer)", "updated.buffer.eq(free.payload)"),
], ids=["stepped-lost", "another-closed", "twice", "into-one-that-closes", "taken-anyhow",
        "taken-unused", "never-free", "one-short", "another-is-noted"])
def test_broken_packet_buffers(match, old, new):
    assert not prove(pooled((old, new), match=match), depth=DEPTH).holds
