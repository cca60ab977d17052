"""The tap never stalls the cache: events that a slow sink misses are counted."""

import random

import pytest

from rtl.cache.access_tap import AccessTap
from tests.support import made, receiver, simulate


@pytest.mark.parametrize("select", [1, 2])
@pytest.mark.parametrize("stall", [0.0, 0.8])
def test_every_event_is_given_or_counted(stall, select):
    dut = made(AccessTap, depth=8)
    rng = random.Random(3)
    sent: list[dict] = []
    taken: list[dict] = []

    async def produce(ctx):
        for number in range(300):
            valid, enable = rng.random() < 0.7, number >= 20
            access = {"key": {"row": number, "table": number % 9}, "hit": number & 1,
                      "pending": number >> 1 & 1, "conflict": number >> 2 & 1,
                      "unmerged": number >> 3 & 1}
            ctx.set(dut.select, select if enable else 0)
            ctx.set(dut.events[select - 1], {"valid": valid, **access})
            ctx.set(dut.events[2 - select], {"valid": 1, **access, "hit": ~number & 1})
            await ctx.tick()
            if valid and enable:
                sent.append(access)
        for event in dut.events:
            ctx.set(event.valid, 0)
        for _ in range(100):
            await ctx.tick()
        assert ctx.get(dut.idle)
        assert ctx.get(dut.counters.events) == len(taken)
        assert ctx.get(dut.counters.lost) == len(sent) - len(taken)

    simulate(dut, produce, background=[receiver(dut.o, taken, 1000, stall=stall)])
    assert 50 < len(taken) <= len(sent) and (len(taken) < len(sent)) == (stall > 0)
    rest = iter(sent)
    assert all(access in rest for access in taken), "accesses must come in order"
