"""The timing of recovery in a link sender, whose time jumps over cycles in which nothing moves."""

import pytest

from rtl.config import preset
from rtl.formats import Opcode
from rtl.network.link.sender import LinkSender
from tests.support import simulate

SPACE = 1 << 32


class _Line:
    """A link sender whose packets are seen, and whose time passes a cycle at a time or jumps."""

    def __init__(self, beats: int = 64):
        config = preset("tiny").with_fields(nodes=2, net_payload_beats=22)
        self.dut = LinkSender(config, beats=beats)
        self.now, self.left = SPACE - 500, []

    async def start(self, ctx, tries=100):
        dut = self.dut
        for name, value in (("timeout_first", 600), ("timeout_least", 300),
                            ("timeout_most", 50_000), ("tries", tries), ("time", self.now % SPACE)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.header_out.ready, 1)
        ctx.set(dut.payload_out.ready, 1)
        await ctx.tick().until(dut.idle)

    async def watch(self, ctx):
        """An endless testbench: note when headers leave."""
        out = self.dut.header_out
        async for *_, leaves, time in ctx.tick().sample(out.valid & out.ready, self.dut.time):
            self.left += [time] * leaves

    async def run(self, ctx, cycles, until=None):
        """Let cycles pass, or until ``until()``; jump where nothing moves."""
        dut = self.dut
        for _ in range(cycles):
            if until is not None and until():
                return
            if ctx.get(dut.idle) and ctx.get(dut.waits):
                self.now += (ctx.get(dut.deadline) - self.now) % SPACE
            ctx.set(dut.time, self.now % SPACE)
            await ctx.tick()
            self.now += 1
        assert until is None, "no end"

    async def send(self, ctx, beats, node=0, hold=False):
        """Send a packet; with ``hold`` its last beat stays behind."""
        dut = self.dut
        ctx.set(dut.headers.payload, {"opcode": Opcode.LOOKUPS, "destination": node, "count": 8})
        ctx.set(dut.headers.valid, 1)
        await ctx.tick().until(dut.headers.ready)
        ctx.set(dut.headers.valid, 0)
        for k in range(beats - hold):
            await self.beat(ctx, k == beats - 1)

    async def beat(self, ctx, last):
        dut = self.dut
        ctx.set(dut.payload.payload, {"data": 5, "last": last})
        ctx.set(dut.payload.valid, 1)
        await ctx.tick().until(dut.payload.ready)
        ctx.set(dut.payload.valid, 0)

    async def hear(self, ctx, number, node=0):
        ctx.set(self.dut.acknowledged, {"valid": 1, "node": node, "acknowledge": number})
        await ctx.tick()
        ctx.set(self.dut.acknowledged.valid, 0)


def test_a_packet_that_was_sent_twice_measures_nothing():
    """An acknowledged packet that was sent twice measures nothing, and the time-out stays doubled.
    """
    line = _Line()

    async def bench(ctx):
        await line.start(ctx)
        await line.send(ctx, 1)
        await line.run(ctx, 2_000, lambda: len(line.left) == 2)
        await line.hear(ctx, 1)
        await line.run(ctx, 60)
        assert not ctx.get(line.dut.waits)
        line.left.clear()
        await line.send(ctx, 1)
        await line.run(ctx, 2_000, lambda: len(line.left) == 2)
        assert 1_200 <= (line.left[1] - line.left[0]) % SPACE < 1_260

    simulate(line.dut, bench, background=[line.watch])


def test_beats_of_a_packet_that_is_sent_again_stay_in_the_pool():
    """The beats of an acknowledged packet stay in the pool while the packet is sent again."""
    line = _Line()
    dut = line.dut

    async def bench(ctx):
        await line.start(ctx)
        await line.send(ctx, 22)
        await line.run(ctx, 2_000, lambda: len(line.left) == 2)
        ctx.set(dut.payload_out.ready, 0)
        # More would be than half of the pool: the next packet waits for beats.
        ctx.set(dut.headers.payload, {"opcode": Opcode.LOOKUPS, "destination": 0, "count": 8})
        ctx.set(dut.headers.valid, 1)
        await line.run(ctx, 20)
        assert not ctx.get(dut.headers.ready)
        await line.hear(ctx, 1)
        for _ in range(60):
            *_, ready = await ctx.tick().sample(dut.headers.ready)
            assert not ready, "beats are free while the packet is being sent again"
        ctx.set(dut.payload_out.ready, 1)
        await ctx.tick().until(dut.headers.ready)

    simulate(dut, bench, background=[line.watch], limit=5_000)


@pytest.mark.thorough
def test_a_packet_that_ends_after_its_peer_was_given_up_leaves_the_pool():
    """A packet that ends after its peer was given up leaves the pool at once."""
    line = _Line(beats=128)
    dut = line.dut

    async def bench(ctx):
        await line.start(ctx, tries=1)
        await line.send(ctx, 1)
        await line.send(ctx, 2, hold=True)
        await line.run(ctx, 2_000, lambda: bool(ctx.get(dut.counters.failures)))
        await line.run(ctx, 60)
        await line.beat(ctx, True)
        for _ in range(80):
            ctx.set(dut.time, line.now % SPACE)
            await ctx.tick()
            line.now += 1
        assert ctx.get(dut.idle) and not ctx.get(dut.waits)

    simulate(dut, bench, background=[line.watch])
