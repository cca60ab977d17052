"""Arrivals against a set of numbers: exactly the arrived items are known."""

import random

import pytest

from rtl.gradient.arrivals import Arrivals
from tests.rtl.power_up import powered_up
from tests.support import made, simulate


@pytest.mark.parametrize("places", [8, 32])
def test_an_item_is_known_from_the_next_cycle_on(places):
    """Rows of three rounds of the ring, each of whose items comes once while it is in the ring."""
    dut, rng = made(Arrivals, places), random.Random(places)
    come: set[int] = set()

    async def bench(ctx):
        for cycle in range(places):
            assert ctx.get(dut.sweeping), cycle
            await ctx.tick()
        assert not ctx.get(dut.sweeping)
        oldest, waiting = 0, list(range(places))
        while oldest < 3 * places:
            now = rng.choice(waiting) if waiting and rng.random() < 0.8 else None
            ctx.set(dut.come, now is not None)
            ctx.set(dut.came, rng.getrandbits(16) if now is None else now)
            for number, answer in ((dut.number, dut.known), (dut.asked, dut.here)):
                asked = rng.randrange(oldest, oldest + places)
                ctx.set(number, asked)
                assert ctx.get(answer) == (asked in come)
            await ctx.tick()
            if now is not None:
                come.add(now)
                waiting.remove(now)
            # The oldest row leaves once its item has arrived; another row gets its place.
            if oldest in come and rng.random() < 0.7:
                waiting.append(oldest + places)
                oldest += 1

    simulate(powered_up(dut), bench)
