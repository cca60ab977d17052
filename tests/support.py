"""Producers and consumers for block tests on Amaranth's simulator."""

import gc
import random
import warnings
from collections.abc import Callable, Iterable

from amaranth.hdl import Elaboratable, UnusedElaboratable
from amaranth.sim import Simulator

warnings.simplefilter("ignore", UnusedElaboratable)

PERIOD = 4e-9


def sender(port, items: Iterable, *, stall: float = 0.0, seed: int = 0) -> Callable:
    """Return a testbench that offers ``items`` on an input stream with random gaps."""

    async def bench(ctx):
        rng = random.Random(seed)
        for item in items:
            while rng.random() < stall:
                await ctx.tick()
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    return bench


def receiver(port, taken: list, count: int, *, stall: float = 0.0, seed: int = 1,
             shape=None, check_stable: bool = True) -> Callable:
    """Return a testbench that takes ``count`` items from an output stream into ``taken``.

    While it stalls it checks the stream contract: a valid payload holds until ready.
    """

    async def bench(ctx):
        rng = random.Random(seed)
        while len(taken) < count:
            offered = None
            while rng.random() < stall:
                valid, payload = ctx.get(port.valid), _plain(ctx.get(port.payload))
                if check_stable and offered is not None:
                    assert valid and payload == offered, "payload and valid must hold until ready"
                offered = payload if valid else None
                await ctx.tick()
            ctx.set(port.ready, 1)
            payload, = await ctx.tick().sample(port.payload).until(port.valid)
            ctx.set(port.ready, 0)
            taken.append(_plain(payload))

    return bench


def _plain(value):
    """Return an integer or, for a struct, a (nested) dict of integers."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return value
    return {name: _plain(value[name]) for name in shape().members}


def simulate(dut: Elaboratable, *benches: Callable, background: Iterable[Callable] = (),
             limit: int = 200_000) -> int:
    """Run until every bench returns; fail after ``limit`` cycles. Returns the cycles taken."""
    sim = Simulator(dut)
    sim.add_clock(PERIOD)
    left = [len(benches)]
    cycles = [0]

    def finishing(bench):
        async def run(ctx):
            await bench(ctx)
            left[0] -= 1
        return run

    for bench in benches:
        sim.add_testbench(finishing(bench))
    for bench in background:
        sim.add_testbench(bench, background=True)

    async def watch(ctx):
        while left[0]:
            await ctx.tick()
            cycles[0] += 1
            assert cycles[0] < limit, f"no end after {limit} cycles"

    sim.add_testbench(watch)
    sim.run()
    # Benches that never end go now: torn down by a collection inside the parser of a later import,
    # they upset CPython 3.11's recursion count.
    del sim
    gc.collect()
    return cycles[0]
