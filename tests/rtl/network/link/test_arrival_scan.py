"""Arrival scan: bases advance over arrived packets, and the content of LINK packets."""

import random

import pytest

from rtl.network.link.arrival_scan import ArrivalScan
from tests.rtl.network.dirty import simulate
from tests.rtl.network.link.arrivals import ARRIVALS, MASK, WINDOW
from tests.support import made

LATENCY = ArrivalScan.LATENCY


class Surroundings:
    """Bits, bases and acknowledgements, as the block's neighbours store them."""

    def __init__(self, nodes):
        self.dut, self.nodes = made(ArrivalScan, nodes), nodes
        self.base = [0] * nodes
        self.told = [0] * nodes
        self.bits = [0] * nodes  # as stored, one window each
        self.moves = []

    def come(self, node, sequence):
        """Set the bit of an arrived packet."""
        place = sequence % WINDOW
        self.bits[node] &= ~(1 << place)
        self.bits[node] |= (1 - (sequence >> 11 & 1)) << place

    def start(self, node, base):
        """Start with exactly the packets before ``base`` arrived."""
        self.base[node] = base
        for sequence in range(base - WINDOW, base):
            self.come(node, sequence & MASK)

    async def neighbours(self, ctx):
        dut, cycle = self.dut, 0
        async for _, _, node, word, peer, moved in ctx.tick().sample(
                dut.scan.node, dut.scan.word, dut.base_node, dut.moved):
            cycle += 1
            peer_now = ctx.get(dut.base_node) % self.nodes
            ctx.set(dut.base, self.base[peer_now])
            ctx.set(dut.told, self.told[peer_now])
            ctx.set(dut.scanned, self.bits[node % self.nodes] >> 64 * word & (1 << 64) - 1)
            if moved.valid:
                assert moved.node == peer
                self.base[moved.node] = moved.base
                self.moves.append((cycle, moved.node, moved.base))


async def report(ctx, dut, node, block, forced=0):
    """Request a report; return the LINK packet, None if it is dropped."""
    ctx.set(dut.reports.payload, {"node": node, "block": block, "forced": forced})
    ctx.set(dut.reports.valid, 1)
    await ctx.tick().until(dut.reports.ready)
    ctx.set(dut.reports.valid, 0)
    while not ctx.get(dut.idle):
        if ctx.get(dut.links.valid):
            item = ctx.get(dut.links.payload)
            ctx.set(dut.links.ready, 1)
            await ctx.tick()
            ctx.set(dut.links.ready, 0)
            return item
        await ctx.tick()
    return None


@pytest.mark.parametrize("base", [0, 2048, 511, 1000, 4095, (1 << 23) + 64, MASK - 100])
def test_what_a_link_packet_says(base):
    """Of each block of the window, with and without packets that are missing before others."""
    rng, world = random.Random(base), Surroundings(3)
    dut, node = world.dut, 1
    world.start(node, base)
    come = {base + k & MASK for k in rng.sample(range(1, WINDOW), 300)}
    for sequence in come:
        world.come(node, sequence)
    world.told[node] = base

    async def bench(ctx):
        await ctx.tick()
        for ahead in (-1, 0, 1, 2, 3, 4):
            first = ((base >> 9) + ahead << 9) & MASK
            item = await report(ctx, dut, node, (base >> 9) + ahead & 7, forced=1)
            assert (item.node, item.first) == (node, first)
            assert item.bits == sum(
                1 << k for k in range(ARRIVALS) if (first + k & MASK) in come
                or (first + k - base) & MASK >= 1 << 23)
        # If no packet is missing before another one, and all are acknowledged, no LINK packet is
        # made.
        assert await report(ctx, dut, node, (base >> 9) - 1 & 7) is None
        assert await report(ctx, dut, node, (base >> 9) + 1 & 7) is not None
        world.told[node] = base - 1 & MASK
        assert await report(ctx, dut, node, (base >> 9) - 1 & 7) is not None

    simulate(dut, bench, background=[world.neighbours])


@pytest.mark.parametrize("base, come", [
    (0, 1), (5, 59), (63, 1), (60, 130), (2000, 100), (MASK - 5, 300), (4095, 1)])
def test_base_moves(base, come):
    """Over all that has come, in time."""
    world = Surroundings(2)
    dut = world.dut
    world.start(1, base)
    for k in range(come):
        world.come(1, base + k & MASK)
    world.come(1, base + come + 1 & MASK)  # beyond a missing one
    began = []

    async def bench(ctx):
        await ctx.tick().repeat(3)
        ctx.set(dut.came, {"valid": 1, "node": 1})
        await ctx.tick()
        ctx.set(dut.came.valid, 0)
        began.append(4)
        while not ctx.get(dut.idle):
            await ctx.tick()

    simulate(dut, bench, background=[world.neighbours])
    assert world.base[1] == base + come & MASK
    words = ((base % 64) + come) // 64
    assert world.moves[-1][0] - began[0] == words * LATENCY[
        "base, over up to 64 packets", "base, over 64 more"] + LATENCY[
        "event of a packet, nothing else moving", "base, over up to 64 packets"] - 1


def test_latency_of_a_report():
    world = Surroundings(2)
    dut, cycles = world.dut, []
    world.start(1, 600)

    async def bench(ctx):
        await ctx.tick().repeat(3)
        ctx.set(dut.reports.payload, {"node": 1, "block": 1, "forced": 1})
        ctx.set(dut.reports.valid, 1)
        assert ctx.get(dut.reports.ready)
        waited = 0
        while not ctx.get(dut.links.valid):
            await ctx.tick()
            ctx.set(dut.reports.valid, 0)
            waited += 1
        cycles.append(waited)

    simulate(dut, bench, background=[world.neighbours])
    assert cycles == [LATENCY["report", "its LINK packet's bits"]]
