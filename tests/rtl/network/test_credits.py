"""Credits: a receiver's counts, and the packets that a sender's gate passes, through wraps of
counts."""

import random

import pytest
from amaranth.lib import data

from rtl.network import CreditCounter, CreditGate
from rtl.network.credits import HALF
from tests.rtl.network.dirty import simulate
from tests.support import made, quiet_while_idle, receiver, sender

PACKET = data.StructLayout({"destination": 8, "beats": 16, "mark": 16})
LATENCY = CreditGate.LATENCY["packet", "the same packet"]
SOON = 2 * LATENCY + 2
"""Cycles in which the gate has checked a packet again, after any event."""


@pytest.mark.parametrize("several, nodes, readers", [(False, 1, 1), (True, 5, 3), (False, 16, 2)])
def test_consumed_beats_are_counted_for_each_node(several, nodes, readers):
    dut, rng = made(CreditCounter, nodes, readers, several=several), random.Random(nodes)

    async def bench(ctx):
        for _ in range(nodes):
            assert not ctx.get(dut.idle)
            await ctx.tick()
        assert ctx.get(dut.idle)
        counts = [0] * nodes
        for _ in range(600):
            node, valid = rng.randrange(nodes), rng.random() < 0.7
            beats = rng.randrange(1, 256) if several else 1
            ctx.set(dut.freed, {"valid": int(valid), "node": node}
                    | ({"beats": beats} if several else {}))
            for reader in range(readers):
                asked = rng.choice([node, rng.randrange(nodes)])
                ctx.set(dut.node[reader], asked)
                assert ctx.get(dut.value[reader]) == counts[asked]
            await ctx.tick()
            if valid:  # counts from the next cycle on
                counts[node] = (counts[node] + beats) & 0xFFFF
        assert ctx.get(dut.idle)

    simulate(dut, bench)


def test_a_count_is_cleared_in_a_cycle_without_an_event():
    dut, rng = made(CreditCounter, 3, 1, several=True), random.Random(3)

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        counts = [0] * 3
        for _ in range(600):
            node, valid = rng.randrange(3), rng.random() < 0.7
            clears, cleared = rng.random() < 0.3, rng.randrange(3)
            ctx.set(dut.freed, {"valid": valid, "node": node, "beats": 5})
            ctx.set(dut.clear, {"valid": clears, "node": cleared})
            ctx.set(dut.node[0], cleared)
            assert ctx.get(dut.value[0]) == counts[cleared]
            assert ctx.get(dut.cleared) == (clears and not valid)
            await ctx.tick()
            if valid:
                counts[node] += 5
            elif clears:
                counts[cleared] = 0

    simulate(dut, bench)


class Gated:
    """Packets through a gate, acknowledged late, again and out of order."""

    def __init__(self, nodes: int, window: int, most: int, *, idle: float, stall: float,
                 events: float, seed: int, count: int = 100):
        rng = self.rng = random.Random(seed)
        self.dut, self.nodes, self.window, self.events = made(
            CreditGate, PACKET, nodes), nodes, window, events
        self.packets = [{"destination": rng.randrange(nodes), "mark": n,
                         "beats": rng.randrange(1, most + 1)} for n in range(count)]
        self.sent, self.acked = [0] * nodes, [0] * nodes
        self.out: list[dict] = []
        self.stalled = self.passed = self.due = 0
        simulate(self.dut, sender(self.dut.i, self.packets, stall=idle, seed=seed + 1),
                 receiver(self.dut.o, self.out, count, stall=stall, seed=seed + 2), self.watch,
                 background=[quiet_while_idle(self.dut.idle, [
                     self.dut.i.valid, self.dut.credit_in.valid], [self.dut.o.valid])])
        assert self.out == self.packets

    def event(self) -> tuple[int, int]:
        """Return a node and its count: the current one, an older one, or one that is too high."""
        node, kind = self.rng.randrange(self.nodes), self.rng.random()
        outstanding = self.sent[node] - self.acked[node]
        if kind < 0.1:
            return node, self.sent[node] + self.rng.randrange(1, HALF - outstanding)
        if kind < 0.3:
            return node, max(0, self.acked[node] - self.rng.randrange(HALF))
        return node, self.acked[node] + self.rng.randrange(outstanding + 1)

    async def watch(self, ctx):
        dut, waits, late = self.dut, 0, None
        ctx.set(dut.window, self.window)
        while self.passed < len(self.packets):
            valid = self.rng.random() < self.events
            node, count = self.event()
            ctx.set(dut.credit_in, {"valid": int(valid), "node": node, "value": count & 0xFFFF})
            _, _, offered, ready, item, stalled, o_valid = await ctx.tick().sample(
                dut.i.valid, dut.i.ready, dut.i.payload, dut.stalled, dut.o.valid)
            if late is not None:  # the event of the cycle before has its effect
                self.acked[late[0]] = max(self.acked[late[0]], min(late[1], self.sent[late[0]]))
            late = (node, count) if valid else None
            fits = False
            if offered:
                to = item.destination
                fits = self.sent[to] + item.beats - self.acked[to] <= self.window
            if offered and ready:
                assert fits, "never more than the window is out"
                self.sent[to] += item.beats
                self.passed += 1
            self.stalled += stalled
            assert not stalled or (offered and not ready)
            # A packet that fits leaves soon; another one is seen to wait.
            waits = waits + 1 if offered and not (ready or valid or o_valid) else 0
            if waits > SOON:
                assert stalled and not fits


@pytest.mark.parametrize("nodes, window, most, idle, stall, events", [
    (1, 9, 9, 0.0, 0.0, 0.3), (4, 30_000, 9_000, 0.0, 0.3, 0.1), (3, 5, 3, 0.5, 0.0, 0.04),
    (2, 32_767, 32_767, 0.0, 0.0, 0.2), (3, 64, 4, 0.0, 0.9, 0.5)])
def test_never_more_than_a_window_is_out(nodes, window, most, idle, stall, events):
    run = Gated(nodes, window, most, idle=idle, stall=stall, events=events, seed=window)
    assert run.stalled or stall == 0.9
    assert most < 5_000 or max(run.sent) > 1 << 17


def test_rate_and_latency():
    dut, taken, count = made(CreditGate, PACKET, 2), [], 50
    packets = [{"destination": n % 2, "beats": 1, "mark": n} for n in range(count)]
    first = []

    async def bench(ctx):
        ctx.set(dut.window, 1000)
        await ctx.tick().repeat(4)
        await sender(dut.i, packets)(ctx)

    async def watch(ctx):
        came = cycle = 0
        async for _, _, valid, out in ctx.tick().sample(dut.i.valid, dut.o.valid):
            cycle += 1
            came = came or (cycle if valid else 0)
            if out and not first:
                first.append(cycle - came)

    cycles = simulate(dut, bench, receiver(dut.o, taken, count), background=[watch])
    assert taken == packets and first == [LATENCY]
    assert cycles <= 4 + 2 * count + LATENCY + 2  # a packet in two cycles


def test_a_packet_beyond_the_window_never_passes():
    dut = made(CreditGate, PACKET, 2)

    async def bench(ctx):
        ctx.set(dut.window, 3)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.payload, {"destination": 1, "beats": 4})
        ctx.set(dut.i.valid, 1)
        await ctx.tick().repeat(SOON)
        for _ in range(20):
            assert ctx.get(dut.stalled) and not ctx.get(dut.i.ready) and not ctx.get(dut.idle)
            await ctx.tick()

    simulate(dut, bench)
