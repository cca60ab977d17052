"""Lost misses against a plain list of the vectors that each node owes."""

import random
from dataclasses import replace

import pytest

from rtl.cache.lost_misses import LostMisses
from rtl.config import preset
from tests.support import made, simulate

NODES, IDS = 4, 8


@pytest.mark.parametrize("beats", [1, 3])
def test_each_miss_of_a_lost_node_is_answered(beats):
    """Those in flight by a walk, later ones at once; those of other nodes go on, and vectors of
    other nodes pass whole."""
    config = replace(preset("tiny"), link=True, nodes=NODES, remote_in_flight=IDS)
    dut, rng = made(LostMisses, config), random.Random(beats)
    went: list[tuple[int, int]] = []
    came: list[tuple[int, int, int, int]] = []
    asked = [(tag, tag % NODES) for tag in range(IDS)]
    later = [(IDS + tag, tag % NODES) for tag in range(IDS)]
    lost = {1, 3}

    async def ask(ctx, tag, node):
        ctx.set(dut.misses.payload, {"destination": node, "step": 0, "record": tag << 48})
        ctx.set(dut.misses.valid, 1)
        await ctx.tick().until(dut.misses.ready)
        ctx.set(dut.misses.valid, 0)

    async def owners(ctx):
        """Send vectors of a live node, whole, at random times."""
        while True:
            for beat in range(beats):
                ctx.set(dut.vectors.payload, {
                    "tag": 1000, "data": 1, "last": beat == beats - 1, "lost": 0, "source": 0})
                ctx.set(dut.vectors.valid, 1)
                await ctx.tick().until(dut.vectors.ready)
                ctx.set(dut.vectors.valid, 0)
                await ctx.tick().repeat(1 + rng.randrange(3))

    async def sink(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.fills.ready, 1)
        async for _, _, valid, miss, filled, fill in ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.fills.valid, dut.fills.payload):
            if valid:
                went.append((miss.record >> 48, miss.destination))
            if filled:
                came.append((fill.tag, fill.source, fill.last, fill.lost))

    async def drive(ctx):
        ctx.set(dut.vector_beats, beats)
        await ctx.tick().until(dut.idle)
        for miss in asked:
            await ask(ctx, *miss)
        ctx.set(dut.lost, 1 << 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.lost, 1 << 1 | 1 << 3)  # during the walk for node 1
        await ctx.tick()
        await ctx.tick().until(dut.idle)
        for miss in later:
            await ask(ctx, *miss)
        await ctx.tick().until(dut.idle)

    simulate(dut, drive, background=[owners, sink])
    assert went == [miss for miss in asked + later if miss not in later or miss[1] not in lost]
    zeros = [(tag, source) for tag, source, last, is_lost in came if is_lost and last]
    expected = {miss for miss in asked + later if miss[1] in lost}
    assert set(zeros) == expected
    # A second walk may answer an id again; the remote cache rejects that answer.
    assert all(zeros.count(miss) == 1 for miss in later if miss[1] in lost)
    # Vectors are never interleaved.
    for first in range(0, len(came) - beats + 1, beats):
        vector = came[first:first + beats]
        assert len({(tag, is_lost) for tag, _, _, is_lost in vector}) == 1
        assert [last for _, _, last, _ in vector] == [0] * (beats - 1) + [1]
