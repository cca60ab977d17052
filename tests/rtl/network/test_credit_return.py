"""Credit return: senders always learn enough to continue, with no more records than necessary."""

import random

import pytest

from rtl.formats import StepKind
from rtl.network import CreditReturn
from tests.rtl.network.dirty import simulate
from tests.support import counts_of, made


class Loop:
    """Senders of packets with a window each, a receiver, and headers that return credit."""

    def __init__(self, nodes, window, packets, rng, others):
        self.nodes, self.window, self.rng, self.others = nodes, window, rng, others
        self.largest, self.quarter = window - window // 4, max(1, window // 4)
        self.left = [packets] * nodes
        self.size = [self.largest] * nodes
        self.sent, self.known, self.consumed, self.told = ([0] * nodes for _ in range(4))
        self.queue, self.outbox, self.records = [], [], 0

    def send(self, node):
        """Send the next packet of ``node`` if it has credit."""
        if self.left[node] and self.sent[node] - self.known[node] + self.size[node] <= self.window:
            self.sent[node] += self.size[node]
            self.queue += [node] * self.size[node]
            self.left[node] -= 1
            self.size[node] = self.rng.randint(1, self.largest)

    async def run(self, ctx, dut):
        rng, cycle = self.rng, 0
        ctx.set(dut.window, self.window)
        ctx.set(dut.step, 0xABCD)
        await ctx.tick().repeat(self.nodes + 3)
        while any(self.left) or self.queue or self.outbox or not ctx.get(dut.idle):
            cycle += 1
            self.send(rng.randrange(self.nodes))
            freed = self.queue and rng.random() < 0.8
            ctx.set(dut.freed.valid, 0)
            if freed:
                node = self.queue.pop(0)
                beats = 1
                while self.queue[:1] == [node] and rng.random() < 0.5:
                    beats += 1
                    self.queue.pop(0)
                ctx.set(dut.freed, {"valid": 1, "node": node, "beats": beats})
            else:
                node = None
            # A header takes the count when it is made; it leaves some time later.
            if rng.random() < self.others:
                self.outbox.append([cycle, rng.randrange(self.nodes), None])
            ctx.set(dut.reported.valid, 0)
            for item in self.outbox:
                if item[2] is None and item[0] <= cycle:
                    ctx.set(dut.node[0], item[1])
                    item[2] = ctx.get(dut.value[0])
                    assert item[2] == self.consumed[item[1]]
                    item[0] = cycle + rng.randrange(1, 40)
            leaving = [item for item in self.outbox if item[2] is not None and item[0] <= cycle]
            if leaving:
                item = leaving[0]
                self.outbox.remove(item)
                ctx.set(dut.reported.valid, 1)
                ctx.set(dut.reported.node, item[1])
                ctx.set(dut.reported.value, item[2])
                self.told[item[1]] = max(self.told[item[1]], item[2])
                self.known[item[1]] = max(self.known[item[1]], item[2])
            ready = rng.random() < 0.5
            ctx.set(dut.steps.ready, ready)
            _, _, valid, step = await ctx.tick().sample(dut.steps.valid, dut.steps.payload)
            if node is not None:
                self.consumed[node] += beats
            if valid and ready:
                self.records += 1
                node = step.destination
                assert (step.record, step.step) == (StepKind.CREDIT << 32, 0xABCD)
                if not self.others:
                    assert self.consumed[node] - self.told[node] >= self.quarter
                self.outbox.append([cycle + rng.randrange(30), node, None])
        assert all(c - t < self.quarter for c, t in zip(self.consumed, self.told))


@pytest.mark.parametrize("nodes,window,packets,others", [
    (1, 2, 40, 0.0), (4, 3, 25, 0.0), (5, 5, 20, 0.05), (3, 8, 30, 0.0), (2, 64, 12, 0.02)])
def test_senders_get_on(nodes, window, packets, others):
    dut = made(CreditReturn, nodes, 1)
    loop = Loop(nodes, window, packets, random.Random(window), others)
    counters = {}

    async def bench(ctx):
        await loop.run(ctx, dut)
        counters.update(counts_of(ctx, dut.counters))

    simulate(dut, bench)
    assert loop.sent == loop.consumed
    assert counters == counters | {"beats": sum(loop.sent), "credits": loop.records}
    # A record returns at least a quarter of the window, unless other headers reported part of it.
    assert others or loop.records <= sum(loop.sent) / loop.quarter


def test_header_that_was_overtaken_tells_nothing():
    dut, window = made(CreditReturn, 3, 1), 16
    seen = []

    async def bench(ctx):
        async def events(freed, reported):
            ctx.set(dut.freed, {"valid": 1, "node": 2, "beats": 1})
            for _ in range(freed):
                await ctx.tick()
            ctx.set(dut.freed.valid, 0)
            for value in reported:
                ctx.set(dut.reported, {"valid": 1, "node": 2, "value": value})
                await ctx.tick()
            ctx.set(dut.reported.valid, 0)
            await ctx.tick().repeat(12)
            seen.append(ctx.get(dut.counters.credits))

        ctx.set(dut.window, window)
        ctx.set(dut.steps.ready, 1)
        await ctx.tick().repeat(6)
        await events(3, [])  # less than a quarter
        await events(1, [])  # a quarter: once
        await events(5, [])  # 9 in all, but no header has left since
        await events(0, [9, 4])  # the second one is older
        await events(3, [])  # 3 more than 9
        await events(1, [])
        await events(4, [])  # while a header that reports the 13 before is in flight
        await events(0, [13])

    simulate(dut, bench)
    assert seen == [0, 1, 1, 1, 1, 2, 2, 3]


def test_no_node_is_passed_over():
    """While records are not taken, the others of nodes that are due wait."""
    dut, nodes = made(CreditReturn, 4), []

    async def bench(ctx):
        ctx.set(dut.window, 2)
        await ctx.tick().repeat(8)
        for node in range(4):
            ctx.set(dut.freed, {"valid": 1, "node": node, "beats": 2})
            await ctx.tick()
        ctx.set(dut.freed.valid, 0)
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.idle)
        ctx.set(dut.steps.ready, 1)
        for _ in range(20):
            _, _, valid, step = await ctx.tick().sample(dut.steps.valid, dut.steps.payload)
            if valid:
                nodes.append(step.destination)
        assert ctx.get(dut.idle)

    simulate(dut, bench)
    assert sorted(nodes) == [0, 1, 2, 3]


@pytest.mark.parametrize("nodes", [1, 7])
def test_latency(nodes):
    dut, waited = made(CreditReturn, nodes), []

    async def bench(ctx):
        ctx.set(dut.window, 2)
        ctx.set(dut.steps.ready, 1)
        await ctx.tick().repeat(nodes + 3)
        for node in range(nodes):
            ctx.set(dut.freed, {"valid": 1, "node": node, "beats": 1})
            await ctx.tick()
            ctx.set(dut.freed.valid, 0)
            cycles = 1
            while not ctx.get(dut.steps.valid):
                await ctx.tick()
                cycles += 1
            waited.append(cycles)
            await ctx.tick().repeat(3)

    simulate(dut, bench)
    assert max(waited) <= nodes + 2


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="nodes must be between 1 and 256, not 0"):
        CreditReturn(0)
    with pytest.raises(ValueError, match="readers must be a positive integer, not -1"):
        CreditReturn(2, -2)
