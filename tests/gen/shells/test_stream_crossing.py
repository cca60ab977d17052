"""A stream between two clocks loses no item, whichever side is in reset longer."""

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from gen.shells.stream_crossing import StreamCrossing

ITEMS = list(range(1, 41))


@pytest.mark.parametrize("source_ns, target_ns", [(4.0, 2.222), (2.222, 4.0), (4.0, 9.1)])
@pytest.mark.parametrize("asleep", [0, 30])
def test_items_wait_for_the_other_side(source_ns, target_ns, asleep):
    """The other side is in reset for ``asleep`` cycles longer, and then takes all waiting items."""
    top = Module()
    top.domains.here, top.domains.there = here, there = ClockDomain("here"), ClockDomain("there")
    top.submodules.dut = dut = StreamCrossing(8, "here", "there")
    sim = Simulator(top)
    sim.add_clock(source_ns * 1e-9, domain="here")
    sim.add_clock(target_ns * 1e-9, phase=0.3e-9, domain="there")
    taken, over = [], []

    async def give(ctx):
        ctx.set(here.rst, 1)
        for _ in range(6):
            await ctx.tick("here")
        ctx.set(here.rst, 0)
        for item in ITEMS:
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick("here").until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def take(ctx):
        ctx.set(there.rst, 1)
        ctx.set(dut.o.ready, 1)
        for cycle in range(400):
            if cycle == 6 + asleep:
                ctx.set(there.rst, 0)
            # Items handed over in reset are dropped.
            _, _, item, valid = await ctx.tick("there").sample(dut.o.payload, dut.o.valid)
            if valid:
                taken.append(item)
                assert cycle >= 6 + asleep
        over.append(True)

    sim.add_testbench(give)
    sim.add_testbench(take)
    sim.run()
    assert taken == ITEMS and over


@pytest.mark.parametrize("depth", [0, 4, 12])
def test_bad_depth(depth):
    with pytest.raises(ValueError, match=rf"a power of two .*8, not {depth}"):
        StreamCrossing(8, "sync", "hbm", depth)
