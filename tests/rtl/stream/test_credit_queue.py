"""CreditQueue: items leave in order, each place is reserved once, and no item is lost."""

import random

import pytest

from rtl.stream import CreditQueue
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, simulate


@pytest.mark.parametrize("depth, delay, stall, back", [
    (2, 1, 0.0, 0.0), (2, 3, 0.5, 0.3), (8, 3, 0.3, 0.0), (16, 6, 0.7, 0.5), (5, 2, 0.0, 0.5)])
def test_items_that_were_announced_come_out(depth, delay, stall, back):
    """Each item arrives ``delay`` cycles after the reservation of its place; some never arrive."""
    dut, rng, taken, count = made(CreditQueue, 16, depth), random.Random(depth), [], 300
    sent: list[int] = []

    async def send(ctx):
        under_way = [None] * delay
        held = 0
        while len(sent) < count or any(under_way):
            reserve = bool(ctx.get(dut.free)) and rng.random() < 0.9 and len(sent) < count
            ctx.set(dut.reserve, int(reserve))
            under_way.append(reserve)
            now = under_way.pop(0)
            item = bool(now) and rng.random() >= back
            ctx.set(dut.i.valid, int(item))
            ctx.set(dut.unused, int(bool(now) and not item))
            if item:
                ctx.set(dut.i.payload, len(sent) % 65536)
                sent.append(len(sent))
            await ctx.tick()
            held += reserve - bool(now and not item)
            assert held - len(taken) <= depth
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.unused, 0)
        ctx.set(dut.reserve, 0)
        while len(taken) < len(sent):
            await ctx.tick()
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle) and ctx.get(dut.free)

    async def take(ctx):
        while True:
            await receiver(dut.o, taken, len(taken) + 1, stall=stall, seed=len(taken))(ctx)

    simulate(powered_up(dut), send, background=[take])
    assert taken == sent


def test_an_item_a_cycle_and_when_a_place_is_free():
    depth, delay = 8, 3
    dut, times = made(CreditQueue, 16, depth), []
    latency = CreditQueue.LATENCY

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        pipe = [0] * delay
        for _ in range(60):
            free = ctx.get(dut.free)
            ctx.set(dut.reserve, free)
            pipe.append(free)
            ctx.set(dut.i.valid, pipe.pop(0))
            times.append((free, ctx.get(dut.i.valid), ctx.get(dut.o.valid)))
            await ctx.tick()

    simulate(powered_up(dut), bench)
    assert all(free for free, _, _ in times)
    first, shown = (next(k for k, time in enumerate(times) if time[n]) for n in (1, 2))
    assert shown - first == latency["item", "the same item"]

    async def one(ctx):
        for cycle in range(40):
            ctx.set(dut.reserve, int(cycle < depth))
            ctx.set(dut.i.valid, int(1 <= cycle <= depth))
            ctx.set(dut.o.ready, int(cycle == 20))
            if cycle > depth:
                assert ctx.get(dut.free) == (
                    cycle >= 20 + latency["item taken", "its place free"])
            await ctx.tick()

    simulate(powered_up(dut), one)


@pytest.mark.parametrize("depth", [1, "4"])
def test_depth_is_checked(depth):
    with pytest.raises(ValueError, match="depth must be an integer of at least 2, not"):
        CreditQueue(8, depth)
