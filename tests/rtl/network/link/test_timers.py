"""Round trips, deadlines, and the queue of nodes: against plain models."""

import random

import pytest

from rtl.network.link.deadlines import Deadlines
from rtl.network.link.node_queue import NodeQueue
from rtl.network.link.round_trips import RoundTrips
from tests.rtl.network.dirty import simulate
from tests.support import made

NODES = 5


class Estimate:
    """A peer's timeout by RFC 6298, in integer shifts."""

    def __init__(self):
        self.mean = self.deviation = self.doublings = 0
        self.known = False

    def measured(self, cycles: int) -> None:
        if self.known:
            error = cycles - (self.mean >> 3)
            self.mean += error
            self.deviation += abs(error) - (self.deviation >> 2)
        else:
            self.known, self.mean, self.deviation = True, cycles << 3, cycles << 1
        self.doublings = 0

    def timeout(self, first: int, least: int, most: int) -> int:
        total = (self.mean >> 3) + max(self.deviation, self.mean >> 4) if self.known else first
        return max(least, min(most, total))


def test_time_outs_follow_round_trips():
    dut, rng = made(RoundTrips, NODES), random.Random(1)
    first, least, most = 900, 50, 20_000

    async def bench(ctx):
        for name, value in (("first", first), ("least", least), ("most", most)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick().until(dut.idle)
        peers = [Estimate() for _ in range(NODES)]
        for _ in range(300):
            node = rng.randrange(NODES)
            if rng.random() < 0.7:
                cycles = rng.choice([10, 200, rng.randrange(400, 600), rng.randrange(30_000)])
                peers[node].measured(cycles)
                ctx.set(dut.measured, {"valid": 1, "node": node, "cycles": cycles})
                await ctx.tick()
                # Another measurement meanwhile is ignored.
                ctx.set(dut.measured, {"valid": 1, "node": node, "cycles": 1})
                await ctx.tick()
            else:
                peers[node].doublings = min(15, peers[node].doublings + 1)
                ctx.set(dut.late, {"valid": 1, "node": node})
                await ctx.tick()
            ctx.set(dut.measured, {"valid": 0, "node": 0, "cycles": 0})
            ctx.set(dut.late, {"valid": 0, "node": 0})
            node = rng.randrange(NODES)
            ctx.set(dut.node, node)
            await ctx.tick().repeat(8)
            assert ctx.get(dut.idle)
            assert ctx.get(dut.timeout) == peers[node].timeout(first, least, most)
            assert ctx.get(dut.doublings) == peers[node].doublings

    simulate(dut, bench)


@pytest.mark.parametrize("start", [0, (1 << 32) - 700])
def test_deadlines(start):
    """Each is told once its time has come, and time may jump to the earliest while idle."""
    dut, rng = made(Deadlines, NODES), random.Random(2)
    due = {}
    fired = []

    async def bench(ctx):
        now = 0
        for _ in range(1500):
            ctx.set(dut.time, (start + now) % (1 << 32))
            node, at = rng.randrange(NODES), now + rng.randrange(-3, 120)
            sets, clears = rng.random() < 0.04, rng.random() < 0.01
            ctx.set(dut.set, {"valid": sets, "node": node, "time": (start + at) % (1 << 32)})
            ctx.set(dut.clear, {"valid": clears and not sets, "node": node})
            _, _, over, of, idle, waits, deadline = await ctx.tick().sample(
                dut.due.valid, dut.due.node, dut.idle, dut.waits, dut.deadline)
            if over:
                assert due.pop(of) <= now
                fired.append(of)
            if idle and waits:
                assert (deadline - start) % (1 << 32) == min(due.values())
                assert now < min(due.values())
            if idle and not waits:
                assert not due
            # At the latest when all nodes have been scanned, unless there are events.
            assert all(now - when < 80 for when in due.values())
            if sets:
                due[node] = at
            elif clears:
                due.pop(node, None)
            now += 1
            if idle and waits and not sets and not clears and rng.random() < 0.5:
                now = max(now, min(due.values()))
            assert ctx.get(dut.active) == sum(1 << k for k in due)

    simulate(dut, bench)
    assert len(fired) > 30


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_nodes_wait_once_each_and_take_turns(nodes):
    dut, rng = made(NodeQueue, nodes, 2), random.Random(nodes)
    waiting, sets, given = {}, [0] * nodes, [0] * nodes

    async def bench(ctx):
        for cycle in range(600):
            events = [(rng.random() < 0.2, rng.randrange(nodes)) for _ in range(2)]
            for port, (valid, node) in zip(dut.set, events):
                ctx.set(port, {"valid": valid, "node": node})
            ctx.set(dut.o.ready, rng.random() < 0.4)
            _, _, valid, ready, node, idle = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload, dut.idle)
            if valid and ready:
                given[node] += 1
                assert given[node] <= sets[node]
                assert cycle - waiting.pop(node, cycle) < 20 * nodes
            assert not idle or not waiting
            for came, node in events:
                if came:
                    sets[node] += 1
                    waiting.setdefault(node, cycle)

    simulate(dut, bench)
    assert min(given) > 10
