"""Number pool: each number goes to one user that reserved it; a reservation can be released."""

import random
from collections import deque

import pytest

from rtl.cache.number_pool import NumberPool
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

LATENCY = NumberPool.LATENCY["number", "free"]
LEAST = 2
"""Cycles from a reservation until its number may be taken."""


@pytest.mark.parametrize("count, needed", [(2, 0.9), (5, 0.3), (16, 0.5), (40, 1.0), (40, 0.1)])
def test_each_number_goes_to_one(count, needed):
    """Whoever has taken a number returns it some time later, as a free list would."""
    dut, rng = made(NumberPool, count), random.Random(f"{count} {needed}")

    async def bench(ctx):
        outside, inside, held = list(range(count)), set(), []
        pipeline: deque[int] = deque()  # cycles in which numbers were reserved
        arriving = deque([0] * LATENCY)
        spare = used = most = 0
        for cycle in range(1500):
            spare += arriving.popleft()
            assert ctx.get(dut.free) == (spare > 0)
            valid = bool(outside) and rng.random() < 0.7
            number = outside[0] if valid else rng.randrange(count)
            ctx.set(dut.numbers.payload, number)
            ctx.set(dut.numbers.valid, int(valid))
            ready = ctx.get(dut.numbers.ready)
            assert ctx.get(dut.idle) == (not (valid and ready))
            came = int(valid and ready)
            if came:
                inside.add(outside.pop(0))
            arriving.append(came)
            reserve = spare > 0 and rng.random() < 0.9
            ends = bool(pipeline) and cycle - pipeline[0] >= LEAST and rng.random() < 0.8
            use = ends and rng.random() < needed
            ctx.set(dut.reserve, int(reserve))
            ctx.set(dut.use, int(use))
            ctx.set(dut.unused, int(ends and not use))
            if use:
                taken = ctx.get(dut.number)
                assert taken in inside, "a number that came in and was not taken since"
                inside.remove(taken)
                held.append(taken)
                used += 1
            if ends:
                pipeline.popleft()
            if reserve:
                pipeline.append(cycle)
            # An unused reservation may be made again in the next cycle.
            spare += int(ends and not use) - int(reserve)
            if held and rng.random() < 0.4:
                outside.append(held.pop(rng.randrange(len(held))))
            most = max(most, len(pipeline))
            await ctx.tick()
        assert used > 100 and most >= min(2, count)

    simulate(powered_up(dut), bench)


def test_a_number_a_cycle():
    dut, taken, count, total = made(NumberPool, 64), [], 64, 200

    async def bench(ctx):
        reserved = deque()
        for cycle in range(total):
            ctx.set(dut.numbers.payload, cycle % count)
            ctx.set(dut.numbers.valid, 1)
            assert ctx.get(dut.numbers.ready)
            free = ctx.get(dut.free)
            assert free == (cycle >= LATENCY)
            ctx.set(dut.reserve, free)
            reserved.append(free)
            use = len(reserved) > LEAST and reserved.popleft()
            ctx.set(dut.use, use)
            if use:
                taken.append(ctx.get(dut.number))
            await ctx.tick()

    simulate(powered_up(dut), bench)
    assert len(taken) == total - LATENCY - LEAST
    assert all(len(set(taken[n:n + count])) == len(taken[n:n + count])
               for n in range(0, len(taken), count))
