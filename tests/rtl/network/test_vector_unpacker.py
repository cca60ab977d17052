"""Vector unpacker: each vector of a beat leaves in its own beat, with its tag, in order."""

import random

import pytest

from rtl.network.vector_unpacker import VectorUnpacker
from tests.rtl.network.dirty import simulate
from tests.support import made, quiet_while_idle, receiver, send_at_once, sender

LATENCY = VectorUnpacker.LATENCY["beat", "its first vector"]


def beats_of(count: int, packing: int, seed: int, full: bool = False,
             origin: int = 1) -> list[dict]:
    rng, most = random.Random(seed), 1 << packing
    return [{"data": rng.getrandbits(512), "tags": [rng.getrandbits(16) for _ in range(4)],
             "final": most - 1 if full else rng.randrange(most), "origin": rng.getrandbits(origin)}
            for _ in range(count)]


def vectors_of(beat: dict, packing: int) -> list[dict]:
    bits = 512 >> packing
    return [{"beat": {"tag": beat["tags"][k], "data": beat["data"] >> bits * k & (1 << bits) - 1,
                      "last": 1, "lost": 0}, "origin": beat["origin"]}
            for k in range(beat["final"] + 1)]


@pytest.mark.parametrize("packing", [1, 2])
@pytest.mark.parametrize("idle, stall, depth", [
    (0.0, 0.0, 8), (0.8, 0.0, 64), (0.0, 0.6, 2), (0.5, 0.4, 100)])
def test_vectors_leave_in_order(packing, idle, stall, depth):
    origin = 8 if depth > 50 else 1
    dut, taken = made(VectorUnpacker, depth, origin), []
    beats = beats_of(100, packing, seed=depth, origin=origin)
    wanted = [vector for beat in beats for vector in vectors_of(beat, packing)]

    async def settings(ctx):
        ctx.set(dut.vector_packing, packing)

    simulate(dut, settings, sender(dut.i, beats, stall=idle),
             receiver(dut.o, taken, len(wanted), stall=stall), background=[
                 quiet_while_idle(dut.idle, [dut.i.valid], [dut.o.valid])])
    assert taken == wanted


@pytest.mark.parametrize("packing", [1, 2])
def test_a_vector_a_cycle_and_room_for_a_beat_each(packing):
    """While nothing is taken there is room for ``depth`` beats; then they follow without a gap."""
    depth = 20
    dut, taken = made(VectorUnpacker, depth), []
    beats = beats_of(depth, packing, seed=packing, full=True)

    async def bench(ctx):
        ctx.set(dut.vector_packing, packing)
        await ctx.tick()
        for beat in beats:
            await send_at_once(ctx, dut.i, beat)
        ctx.set(dut.o.ready, 1)
        for _ in range(depth << packing):
            assert ctx.get(dut.o.valid)
            taken.append(ctx.get(dut.o.payload.beat.tag))
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
    assert taken == [tag for beat in beats for tag in beat["tags"][:1 << packing]]


def test_latency():
    dut = made(VectorUnpacker, 8)

    async def bench(ctx):
        ctx.set(dut.vector_packing, 2)
        await ctx.tick()
        await send_at_once(ctx, dut.i, beats_of(1, 2, 3)[0])
        for _ in range(LATENCY - 1):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        assert ctx.get(dut.o.valid)

    simulate(dut, bench)
