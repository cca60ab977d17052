"""Step barrier against a plain-Python record of finished steps by node."""

import random

import pytest

from rtl.formats import StepKind
from rtl.training import StepBarrier
from tests.support import a_bit_apart, receiver, simulate

DONE = StepKind.DONE << 32


def told(step, nodes, node):
    return [{"destination": other, "step": step, "record": DONE}
            for other in range(nodes) if other != node]


class Barrier:
    """A barrier with modelled peers."""

    def __init__(self, nodes, node, *, most=8):
        self.dut, self.nodes, self.node = StepBarrier(most), nodes, node
        self.forgets, self.rng, self.first = [], random.Random(nodes), 0

    async def start(self, ctx):
        ctx.set(self.dut.node, self.node)
        ctx.set(self.dut.nodes, self.nodes)
        ctx.set(self.dut.open_step, self.first)
        await ctx.tick()

    async def own(self, ctx, step):
        ctx.set(self.dut.own.payload, step)
        ctx.set(self.dut.own.valid, 1)
        await ctx.tick().until(self.dut.own.ready)
        ctx.set(self.dut.own.valid, 0)

    async def done(self, ctx, source, step):
        ctx.set(self.dut.received, {"valid": 1, "source": source, "step": step})
        await ctx.tick()
        ctx.set(self.dut.received.valid, 0)

    async def sweep(self, ctx):
        """Take as many cycles as a table's sweep."""
        while True:
            _, _, forget, step = await ctx.tick().sample(self.dut.forget, self.dut.open_step)
            if forget:
                self.forgets.append(step)
                ctx.set(self.dut.forgetting, 1)
                await ctx.tick().repeat(self.rng.randrange(1, 9))
                ctx.set(self.dut.forgetting, 0)


@pytest.mark.parametrize("nodes, node, stall", [(1, 0, 0.0), (2, 1, 0.4), (5, 2, 0.0), (8, 7, 0.5)])
def test_a_step_opens_when_all_are_done(nodes, node, stall):
    barrier, rng, count = Barrier(nodes, node), random.Random(nodes), 12
    dut, steps, reports, bad = barrier.dut, [], [], [0]

    async def script(ctx):
        await barrier.start(ctx)
        for step in range(count):
            assert ctx.get(dut.open_step) == step
            calls = [other for other in range(nodes) if other != node] + ["own"]
            rng.shuffle(calls)
            for n, who in enumerate(calls):
                assert ctx.get(dut.open_step) == step
                written = ctx.get(dut.written)
                assert written & ~sum(1 << (node if w == "own" else w) for w in calls[:n]) == 0
                assert not n or calls[n - 1] == "own" or written >> calls[n - 1] & 1
                while n == nodes - 1 and who != "own" and not ctx.get(dut.written) >> node & 1:
                    await ctx.tick()  # the other nodes are being notified
                for source, late in ((node, step), (nodes, step), (0 if node else 1, step + 1),
                                     (0 if node else 1, step - 1 & 0xFFFF)):
                    if rng.random() < 0.3:
                        await barrier.done(ctx, source, late)
                        bad[0] += 1
                if who == "own":
                    await barrier.own(ctx, step)
                else:
                    await barrier.done(ctx, who, step)
                    if n < nodes - 1 and rng.random() < 0.5:
                        await barrier.done(ctx, who, step)
                        bad[0] += 1
                await ctx.tick().repeat(rng.randrange(1, 5))
            while ctx.get(dut.open_step) == step:
                await ctx.tick()
            assert ctx.get(dut.written) == 0
        await ctx.tick().until(dut.idle)
        assert ctx.get(dut.counters.steps) == count and ctx.get(dut.counters.bad_done) == bad[0]

    simulate(dut, script, receiver(dut.steps, steps, count * (nodes - 1), stall=stall),
             receiver(dut.reports, reports, count, stall=stall), limit=5_000)
    assert steps == [record for step in range(count) for record in told(step, nodes, node)]
    assert reports == [{"destination": 0, "step": step, "record": DONE} for step in range(count)]
    assert not barrier.forgets


def test_tables_forget_twice_before_a_step_comes_again():
    """Steps of a single node up to and past 2^16, begun shortly before each time."""
    for first in (0x7FFE, 0xFFFE):
        barrier = Barrier(1, 0)
        dut, reports = barrier.dut, []
        # The step number is only reachable through all earlier steps; this test sets it directly.
        barrier.first = first

        async def script(ctx):
            await barrier.start(ctx)
            for step in (first, first + 1, first + 2 & 0xFFFF):
                await barrier.own(ctx, step)
                while ctx.get(dut.open_step) == step:
                    assert not (barrier.forgets and ctx.get(dut.forgetting) and step == first)
                    await ctx.tick()
                assert not ctx.get(dut.forgetting)

        simulate(dut, script, receiver(dut.reports, reports, 3), background=[barrier.sweep])
        assert [report["step"] for report in reports] == [first, first + 1, first + 2 & 0xFFFF]
        assert barrier.forgets == [first + 1]


def test_others_are_told_when_tables_have_forgotten():
    barrier, steps = Barrier(2, 0), []
    dut = barrier.dut
    barrier.first = 0x7FFF

    async def script(ctx):
        await barrier.start(ctx)
        await barrier.own(ctx, 0x7FFF)
        ctx.set(dut.forgetting, 1)
        ctx.set(dut.steps.ready, 1)
        for _ in range(30):
            assert not ctx.get(dut.steps.valid) and not ctx.get(dut.idle)
            await ctx.tick()
        ctx.set(dut.forgetting, 0)
        await receiver(dut.steps, steps, 1)(ctx)

    simulate(dut, script)
    assert steps == told(0x7FFF, 2, 0)


def test_latency_is_as_documented():
    barrier = Barrier(4, 1)
    dut = barrier.dut

    async def script(ctx):
        await barrier.start(ctx)
        ctx.set(dut.steps.ready, 1)
        ctx.set(dut.reports.ready, 1)
        await barrier.own(ctx, 0)
        cycles = []
        for cycle in range(1, 7):
            if ctx.get(dut.steps.valid):
                cycles.append(cycle)
            await ctx.tick()
        # The number of this node is skipped.
        assert cycles == [2, 4, 5]
        for source in (0, 2, 3):
            await barrier.done(ctx, source, 0)
        assert ctx.get(dut.open_step) == 0
        await ctx.tick().repeat(2)
        assert ctx.get(dut.open_step) == 1

    simulate(dut, script)


@pytest.mark.parametrize("open_step", [0, 0xFFFE])
def test_a_step_that_is_not_open_is_no_end(open_step):
    """A bit apart, of this node and of the other."""
    barrier = Barrier(2, 0)
    dut, barrier.first = barrier.dut, open_step

    async def script(ctx):
        await barrier.start(ctx)
        for step in a_bit_apart(open_step):
            await barrier.own(ctx, step)
            await barrier.done(ctx, 1, step)
        await ctx.tick().repeat(5)
        assert ctx.get(dut.open_step) == open_step and ctx.get(dut.counters.bad_done) == 32
        assert ctx.get(dut.idle) and not ctx.get(dut.written)

    simulate(dut, script)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="nodes must be between 1 and 256, not 0"):
        StepBarrier(0)
    with pytest.raises(TypeError, match="nodes must be an integer, not True"):
        StepBarrier(True)
