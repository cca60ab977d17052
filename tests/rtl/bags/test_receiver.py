"""BagReceiver: beats in order, the shares of requesters, and marks where words are missing."""

import random
from itertools import pairwise

import pytest

from rtl.bags.receiver import BagReceiver
from rtl.config import NicConfig
from tests.rtl.network.dirty import simulate
from tests.support import counts_of, made, receiver, sender

NODES, DEPTH = 4, 32
LATENCY = BagReceiver.LATENCY["beat", "the same beat"]


def block(depth: int = DEPTH) -> BagReceiver:
    return made(
        BagReceiver, NicConfig(nodes=NODES, owner_bags=16, owner_bag_beats=depth))


def packets(rng: random.Random, count: int) -> list[dict]:
    """Return the beats of packets of 1 to 6 beats; the low data bits number the beats."""
    beats = []
    for _ in range(count):
        source, step, length = rng.randrange(NODES), rng.getrandbits(16), rng.randrange(1, 7)
        for k in range(length):
            beats.append({"data": rng.getrandbits(500) << 12 | len(beats), "source": source,
                          "step": step, "last": int(k == length - 1),
                          "records": rng.randrange(1, 9) if k == length - 1 else 8})
    return beats


def expected(beats: list[dict], kept: list[bool]) -> list[dict]:
    """Return the beats that leave if ``kept``, with their marks."""
    before = [True, *(beat["last"] or not keep for beat, keep in zip(beats, kept))]
    return [beat | {"fresh": int(bool(fresh))}
            for beat, keep, fresh in zip(beats, kept, before) if keep]


@pytest.mark.parametrize("share, gap, stall", [
    (16, 0.3, 0.0), (2, 0.0, 0.5), (5, 0.2, 0.8), (DEPTH, 0.0, 0.9)])
def test_beats_within_their_shares(share, gap, stall):
    """A beat is dropped if its requester has its share inside, or if the receiver is full. Both
    leave room for the output registers and events that are counted late."""
    rng, dut = random.Random(share), block()
    beats, taken, kept, inside = packets(rng, 80), [], [], [0] * NODES

    async def send(ctx):
        ctx.set(dut.share, share)
        await sender(dut.i, beats, stall=gap)(ctx)
        ctx.set(dut.i.valid, 0)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick()
        counts = counts_of(ctx, dut.counters)
        assert counts == {"beats": len(taken), "over_credit": len(beats) - len(taken), "records":
                          sum(beat["records"] for beat in taken)}

    async def watch(ctx):
        came = False
        async for _, _, valid, node, words, i, o, out in ctx.tick().sample(
                dut.kept.valid, dut.kept.node, dut.kept.beats, dut.i.valid & dut.i.ready,
                dut.o.valid & dut.o.ready, dut.o.payload.source):
            if came:
                beat = beats[len(kept)]
                kept.append(bool(valid))
                if valid:
                    assert (node, words) == (beat["source"], beat["records"])
                    inside[node] += 1
                    assert inside[node] <= share + 6 and sum(inside) <= DEPTH + 5
                else:
                    assert inside[beat["source"]] >= share - 1 or sum(inside) >= DEPTH
            came = i
            inside[out] -= o

    async def take(ctx):
        while True:
            ctx.set(dut.o.ready, int(rng.random() >= stall))
            await ctx.tick()

    async def collect(ctx):
        async for _, _, moves, item in ctx.tick().sample(dut.o.valid & dut.o.ready, dut.o.payload):
            if moves:
                taken.append({name: int(item[name]) for name in item.shape().members})

    simulate(dut, send, background=[watch, take, collect])
    assert taken == expected(beats, kept)
    assert (len(taken) < len(beats)) == (stall > 0)
    assert not stall or any(item["fresh"] and not before["last"] for before, item in pairwise(taken)
                            if before["source"] == item["source"])


def test_rate_and_latency():
    rng, dut, cycles = random.Random(2), block(256), {"in": [], "out": []}
    beats, taken = packets(rng, 30), []

    async def watch(ctx):
        cycle = 0
        async for _, _, i, o in ctx.tick().sample(dut.i.valid & dut.i.ready,
                                                  dut.o.valid & dut.o.ready):
            cycles["in"] += [cycle] * i
            cycles["out"] += [cycle] * o
            cycle += 1

    async def send(ctx):
        ctx.set(dut.share, 256)
        await sender(dut.i, beats)(ctx)

    simulate(dut, send, receiver(dut.o, taken, len(beats)), background=[watch])
    assert taken == expected(beats, [True] * len(beats))
    assert cycles["out"] == [each + LATENCY for each in cycles["in"]]
    assert cycles["in"][-1] - cycles["in"][0] == len(beats) - 1


def test_ready_and_idle():
    dut = block()

    async def bench(ctx):
        ctx.set(dut.share, 4)
        assert not ctx.get(dut.i.ready) and not ctx.get(dut.idle)
        await ctx.tick().until(dut.i.ready)
        assert ctx.get(dut.idle)
        ctx.set(dut.i.payload, packets(random.Random(1), 1)[0])
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        for _ in range(LATENCY):
            assert not ctx.get(dut.idle)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
