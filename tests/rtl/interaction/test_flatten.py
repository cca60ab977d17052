"""Flattener: the dots of a sample, 16 per beat, zeros after the last."""

import random

import pytest

from rtl.config import preset
from rtl.interaction.flatten import Flattener
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, simulate

ROOM = 8


@pytest.mark.few(2)
@pytest.mark.parametrize("units", [1, 5, 13, 16])
@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_dots_in_order(units, gap):
    dut = made(Flattener, preset("tiny").with_fields(dot_units=units, max_dimension=16), ROOM)
    rng = random.Random(units)
    groups, right = [], []
    for length in (1, 16, 17, 32, 40, 3, 66, 15):
        dots = [rng.getrandbits(32) | 1 for _ in range(length)]
        padded = dots + [0] * (-length % 16)
        right += [{"data": sum(dot << 32 * k for k, dot in enumerate(padded[first:first + 16])),
                   "last": int(first + 16 >= length)} for first in range(0, length, 16)]
        fill = 0
        for first in range(0, length, units):
            some = dots[first:first + units]
            filled, done = fill + len(some), first + units >= length
            groups.append(({"count": len(some), "fill": fill, "emit": int(filled >= 16 or done),
                            "last": int(done and filled <= 16)}, some))
            fill = filled % 16
            if done and filled > 16:
                groups.append(({"count": 0, "fill": fill, "emit": 1, "last": 1}, []))
    # Lanes without a dot hold anything: dots of other samples or of other slices.
    taken = []

    async def feed(ctx):
        for group, some in groups:
            while rng.random() < gap:
                ctx.set(dut.valid, 0)
                await ctx.tick()
            lanes = some + [rng.getrandbits(32) for _ in range(units - len(some))]
            ctx.set(dut.group, group)
            ctx.set(dut.dots, sum(dot << 32 * k for k, dot in enumerate(lanes)))
            ctx.set(dut.valid, 1)
            await ctx.tick()
        ctx.set(dut.valid, 0)

    async def take(ctx):
        await receiver(dut.o, taken, len(right))(ctx)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    simulate(powered_up(dut, units), feed, take)
    assert taken == right
