"""Output queues: records of a destination in order, within its credit, independent of the others.
"""

import random
from collections import deque

import pytest

from rtl.network import OutputQueues
from rtl.network.queue_turns import LEAST
from tests.rtl.network.dirty import simulate
from tests.support import made, quiet_while_idle, receiver, sender

PLACES = 64
SERVED = 60
"""Cycles until a record with credit leaves, for any waits of four others."""


def records(rng, nodes: int, count: int) -> list[dict]:
    return [{"destination": rng.randrange(nodes), "step": n & 0xFFFF, "record": rng.getrandbits(64)}
            for n in range(count)]


class Queued:
    """Records through the queues, then placed, sent and acknowledged as by a packager and owners.

    Owners in ``silent`` acknowledge nothing before cycle ``until``.
    """

    def __init__(self, nodes: int, window: int, *, idle: float, stall: float, silent=(),
                 until: int = 1 << 30, count: int = 400, shares: float = 0.5, cycles: int = 6000):
        rng = self.rng = random.Random(window)
        self.dut, self.nodes, self.window = made(OutputQueues, nodes, PLACES), nodes, window
        self.silent, self.until, self.shares, self.cycles = silent, until, shares, cycles
        self.inside, self.left = [deque() for _ in range(nodes)], [0] * nodes
        self.unplaced, self.beats, self.acknowledged = ([0] * nodes for _ in range(3))
        self.short = set()
        self.items = records(rng, nodes, count)
        simulate(self.dut, self.watch, background=[
            self.feed(idle), receiver(self.dut.o, [], 1 << 30, stall=stall, seed=window + 2),
            quiet_while_idle(self.dut.idle, [self.dut.i.valid, self.dut.on],
                             [self.dut.o.valid])])

    def feed(self, idle: float):
        """Offer the records in order; at most ``PLACES`` of a destination are inside."""
        async def bench(ctx):
            ctx.set(self.dut.window, self.window)
            ctx.set(self.dut.on, 1)
            await ctx.tick().repeat(self.nodes + 1)
            for item in self.items:
                while len(self.inside[item["destination"]]) >= PLACES - 1:
                    await ctx.tick()
                await sender(self.dut.i, [item], stall=idle, seed=self.rng.getrandbits(32))(ctx)
        return bench

    async def watch(self, ctx):
        dut, waits = self.dut, [0] * self.nodes
        for cycle in range(self.cycles):
            self.place(ctx)
            self.acknowledge(ctx, cycle)
            come, item, go, ready, record, short, at = (await ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.i.payload, dut.o.valid & dut.o.ready, dut.o.ready,
                dut.o.payload, dut.short, dut.short_node))[2:]
            if come:
                self.inside[item.destination].append((item.step, item.record))
            if go:
                node = record.destination
                assert (record.step, record.record) == self.inside[node].popleft()
                self.left[node] += 1
                self.unplaced[node] += 1
                assert self.unplaced[node] + self.beats[node] <= self.window
            if short:
                self.short.add(at)
            for node in range(self.nodes):
                credit = self.window - self.unplaced[node] - self.beats[node]
                free = credit >= min(len(self.inside[node]), max(1, min(LEAST, self.window // 4)))
                gone = go and record.destination == node
                waits[node] = 0 if gone else waits[node] + (
                    bool(self.inside[node]) and free and ready)
                assert waits[node] <= SERVED
        self.done = not any(self.inside)
        assert ctx.get(dut.idle) == self.done

    def place(self, ctx):
        """Add a record to a packet: in a shared beat, or in its own beat."""
        node, joins = self.rng.randrange(self.nodes), False
        for node in self.rng.sample(range(self.nodes), self.nodes):
            if self.unplaced[node]:
                self.unplaced[node] -= 1
                joins = self.beats[node] > 0 and self.rng.random() < self.shares
                self.beats[node] += not joins
                break
        ctx.set(self.dut.joined, {"valid": int(joins), "node": node})

    def acknowledge(self, ctx, cycle: int):
        node = self.rng.randrange(self.nodes)
        answers = self.rng.random() < 0.3 and (node not in self.silent or cycle >= self.until)
        if answers:
            beats = self.rng.randint(0, self.beats[node])
            self.beats[node] -= beats
            self.acknowledged[node] += beats
        ctx.set(self.dut.acknowledged, {"valid": int(answers), "node": node,
                                        "value": self.acknowledged[node] & 0xFFFF})


@pytest.mark.thorough
@pytest.mark.parametrize("nodes,window,idle,stall,silent", [
    (1, 3, 0.0, 0.0, ()), (2, 1, 0.3, 0.2, (0,)), (5, 7, 0.0, 0.0, (1, 4)),
    (5, 40, 0.2, 0.5, (0, 1, 2, 3)), (3, 16, 0.0, 0.9, ())])
def test_only_those_without_credit_wait(nodes, window, idle, stall, silent):
    run = Queued(nodes, window, idle=idle, stall=stall, silent=silent, shares=0.3,
                 count=100 if window == 1 else 60 * nodes)
    for node in range(nodes):
        if node not in silent:
            assert not run.inside[node]
        elif run.inside[node]:
            assert run.unplaced[node] + run.beats[node] > window - max(1, window // 4)
            assert node in run.short
    assert sum(run.left) > 50 and run.done is not bool(silent)


@pytest.mark.thorough
def test_all_leave_once_credit_comes():
    run = Queued(4, 5, idle=0.1, stall=0.1, silent=(0, 2), until=2000)
    assert run.done and sum(run.left) == 400 and run.short >= {0, 2}


def test_latency_and_rate():
    dut, count, nodes = made(OutputQueues, 5, PLACES), 300, 5
    first, last, taken = [], [], []

    async def bench(ctx):
        ctx.set(dut.window, 1000)
        ctx.set(dut.on, 1)
        await ctx.tick().repeat(nodes + 1)
        await sender(dut.i, [{"destination": n % nodes, "step": 0, "record": n}
                             for n in range(count)])(ctx)

    async def watch(ctx):
        cycle = 0
        async for _, _, come, go in ctx.tick().sample(dut.i.valid & dut.i.ready, dut.o.valid):
            cycle += 1
            if come and not first:
                first.append(cycle)
            if go and len(first) == 1:
                first.append(cycle)
            if go:
                last.append(cycle)

    simulate(dut, bench, receiver(dut.o, taken, count), background=[watch])
    assert first[1] - first[0] == OutputQueues.LATENCY["record, with queues", "the same record"]
    assert last[-1] - last[0] < count + 20
    assert sorted(item["record"] for item in taken) == list(range(count))


def test_without_queues_nothing_is_between():
    dut = made(OutputQueues, 3, PLACES)

    async def bench(ctx):
        rng = random.Random(1)
        await ctx.tick().repeat(5)
        for item in records(rng, 3, 50):
            ctx.set(dut.i.payload, item)
            for valid, ready in ((0, 1), (1, 0), (1, 1)):
                ctx.set(dut.i.valid, valid)
                ctx.set(dut.o.ready, ready)
                assert (ctx.get(dut.o.valid), ctx.get(dut.i.ready)) == (valid, ready)
                assert ctx.get(dut.o.payload.record) == item["record"]
                await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("arguments,error,message", [
    ((0, 4), ValueError, "nodes must be between 1 and 256, not 0"),
    ((2, "4"), TypeError, "places must be an integer, not '4'"),
    ((2, 6), ValueError, "places must be a power of two, at least 2, not 6")])
def test_arguments_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        OutputQueues(*arguments)
