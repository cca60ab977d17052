"""A sweep visits every address once after reset, then stays done."""

import pytest
from amaranth.hdl import Module, Signal

from rtl.memory import sweep
from tests.support import simulate


@pytest.mark.parametrize("depth", [1, 2, 5, 16])
def test_every_address_once(depth):
    m, address, swept = Module(), Signal(8), Signal()
    place, done = sweep(m, depth)
    m.d.comb += [address.eq(place), swept.eq(done)]

    async def bench(ctx):
        visited = []
        while not ctx.get(swept):
            visited.append(ctx.get(address))
            await ctx.tick()
        assert visited == list(range(depth))
        await ctx.tick().repeat(2 * depth)
        assert ctx.get(swept)

    simulate(m, bench)
