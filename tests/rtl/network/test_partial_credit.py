"""Partials with credit returned only by CREDIT records: all of them arrive."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from rtl.formats import Opcode
from rtl.network import CreditReturn, PartialPackager, RecordPackager
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import Taken
from tests.support import made, receiver, sender


class Loop(Elaboratable):
    """A sender and its receivers; the nodes of one block model their owed credits."""

    def __init__(self, nodes: int, max_beats: int):
        self.partials = PartialPackager(nodes, max_beats, Opcode.PARTIALS, True)
        self.credits = CreditReturn(nodes)
        self.steps = RecordPackager(nodes, 1, Opcode.STEPS, False)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.partials, m.submodules.credits = self.partials, self.credits
        m.submodules.steps = steps = self.steps
        left = steps.headers
        wiring.connect(m, self.credits.steps, steps.i)
        m.d.comb += [
            self.credits.node[0].eq(steps.credit_node), steps.credit.eq(self.credits.value[0]),
            steps.batch.eq(1), self.partials.vector_packing.eq(2),
            steps.payload.ready.eq(1), self.credits.reported.valid.eq(left.valid & left.ready),
            self.credits.reported.node.eq(left.payload.destination),
            self.credits.reported.value.eq(left.payload.credit),
            self.partials.credit_in.eq(self.credits.reported),
            self.credits.window.eq(self.partials.window),
        ]
        return m


@pytest.mark.few(2)
@pytest.mark.parametrize("nodes,max_beats,window,short", [
    (1, 22, 2, 1), (2, 22, 12, 4), (1, 22, 24, 9)])
def test_all_get_through(nodes, max_beats, window, short):
    rng = random.Random(window)
    dut, beats, headers, freeing = made(Loop, nodes, max_beats), [0], [], []
    # Each step ends with a short packet, whose credit alone is never reported.
    bursts = [size for _ in range(2) for size in (90, short) for _ in range(nodes)]
    items = [{"destination": k % nodes, "step": k // nodes,
              "record": {"table": 0, "row": 0, "beat": 0, "level": 0}, "data": 0}
             for k, size in enumerate(bursts) for _ in range(size)]
    count = [0]

    def take_beat(beat):
        beats[0] += 1
        if beat["last"]:
            header = headers.pop(0)
            freeing.append((header["destination"], beats[0]))
            count[0] += header["count"]
            beats[0] = 0

    async def free(ctx):
        """Consume the packets, sometimes fast, sometimes slowly."""
        while True:
            ctx.set(dut.credits.freed.valid, 0)
            if freeing and rng.random() < 0.2:
                node, number = freeing.pop(0)
                ctx.set(dut.credits.freed, {"valid": 1, "node": node, "beats": number})
            await ctx.tick()

    async def bench(ctx):
        ctx.set(dut.partials.window, window)
        ctx.set(dut.partials.timeout, 30)
        await ctx.tick().repeat(8)
        await sender(dut.partials.i, items, stall=0.1)(ctx)
        while count[0] < len(items):
            await ctx.tick()

    endless = 1 << 30
    simulate(dut, bench, limit=8000, background=[
        free, receiver(dut.partials.headers, headers, endless, seed=1),
        receiver(dut.partials.payload, Taken(take_beat), endless, stall=0.3, seed=2),
        receiver(dut.steps.headers, [], endless, stall=0.5, seed=3), clock(dut)])


def clock(dut):
    async def bench(ctx):
        time = 0
        async for _ in ctx.tick():
            time += 1
            ctx.set(dut.partials.time, time)
            ctx.set(dut.steps.time, time)
    return bench
