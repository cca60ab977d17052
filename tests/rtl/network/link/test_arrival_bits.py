"""Arrival bits against a set of numbers. Laps of the window: see the tests of the link receiver."""

import random

import pytest

from rtl.network.link.arrival_bits import WORD, ArrivalBits, has_come
from tests.rtl.network.dirty import simulate
from tests.rtl.network.link.arrivals import MASK, WINDOW
from tests.support import made

LATENCY = ArrivalBits.LATENCY


@pytest.mark.parametrize("nodes, first", [
    (3, 0), (2, 2048 * 3 + 77), (1, MASK - 70), (5, 64), (2, 2048 * 5 + 2047)])
def test_bits_of_a_window(nodes, first):
    """Packets in any order, often neighbours, those that have come once more; and whole words."""
    rng = random.Random(first)
    dut = made(ArrivalBits, nodes, first_sequence=first)
    come = [set() for _ in range(nodes)]

    async def look(ctx, node, sequence):
        """Look at a packet and, if it is new, mark it; return the number looked at meanwhile."""
        early = rng.randrange(nodes), (sequence + rng.choice((0, 1, 64))) & MASK
        ctx.set(dut.look, {"source": node, "sequence": sequence})
        await ctx.tick()
        for step in range(LATENCY["look", "come"] - 1):
            if step == 0 and rng.random() < 0.5:
                ctx.set(dut.look, {"source": early[0], "sequence": early[1]})
            await ctx.tick()
        assert ctx.get(dut.come) == (sequence in come[node])
        ctx.set(dut.mark, sequence not in come[node])
        come[node].add(sequence)
        await ctx.tick()
        ctx.set(dut.mark, 0)

    async def scan(ctx, node, sequence):
        ctx.set(dut.scan, {"node": node, "word": sequence % WINDOW // WORD})
        await ctx.tick().repeat(LATENCY["scan", "scanned"])
        ctx.set(dut.look.sequence, sequence)
        bits, start = ctx.get(has_come(dut.scanned, dut.look.sequence)), sequence - sequence % WORD
        for k in range(WORD):
            if (start + k - first) & MASK < WINDOW:
                assert bits >> k & 1 == (start + k & MASK in come[node])

    async def bench(ctx):
        await ctx.tick().until(dut.ready)
        for _ in range(150):
            node, start = rng.randrange(nodes), first + rng.randrange(WINDOW - 3)
            for sequence in rng.choice(([0], [0, 0], [0, 1, 2], [2, 1, 1, 0])):
                await look(ctx, node, start + sequence & MASK)
            await scan(ctx, node, rng.choice((start, first + rng.randrange(WINDOW))) & MASK)

    simulate(dut, bench)
