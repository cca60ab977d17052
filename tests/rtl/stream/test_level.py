"""Level and its flags against a count in Python."""

import random

import pytest

from rtl.stream import Level
from tests.rtl.power_up import powered_up
from tests.support import made, simulate


@pytest.mark.parametrize("most, init", [(1, 0), (1, 1), (2, 1), (3, 3), (4, 4), (16, 0), (37, 20)])
@pytest.mark.parametrize("late", [False, True])
def test_level_and_flags(most, init, late):
    dut, rng, level = made(Level, most, init=init), random.Random(most), init

    async def bench(ctx):
        nonlocal level
        for cycle in range(600):
            assert ctx.get(dut.level) == level
            assert (ctx.get(dut.some), ctx.get(dut.many)) == (level >= 1, level >= 2)
            # Towards one end, and then towards the other.
            likely = (0.9, 0.2)[cycle // 60 % 2]
            down = level > 0 and rng.random() < 1 - likely
            up = (level < most or down) and rng.random() < likely
            ctx.set(dut.up, up)
            ctx.set(dut.down, down)
            level += up - down
            await ctx.tick()

    simulate(powered_up(dut), bench)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="most must be an integer of at least 1, not 0"):
        Level(0)
    with pytest.raises(ValueError, match="init must be an integer between 0 and 4, not 5"):
        Level(4, init=5)
