"""ResultPackager against a plain-Python packer, under random stalls on every side."""

import random

import pytest

from rtl.config import preset
from rtl.formats import Opcode
from rtl.interaction import ResultPackager
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate


def build(dimension=64, host_payload_beats=64):
    return made(ResultPackager, preset("tiny").with_fields(
        max_dimension=dimension, host_payload_beats=host_payload_beats, net_payload_beats=5))


def samples_of(seed, bag_counts, beats, packing=0):
    """Return samples: (number, step, [vector beats of each bag])."""
    rng = random.Random(seed)
    return [(rng.getrandbits(32), rng.getrandbits(16),
             [[rng.getrandbits(512 >> packing) for _ in range(beats)] for _ in range(bags)])
            for bags in bag_counts]


def items_of(samples):
    return [{"data": beat, "beat_last": int(n == len(vector) - 1), "sample": sample, "step": step,
             "bag_last_of_sample": int(b == len(bags) - 1)}
            for sample, step, bags in samples
            for b, vector in enumerate(bags) for n, beat in enumerate(vector)]


def shared(vectors, packing):
    """Return the beats that ``vectors`` share, the first in the lowest lanes."""
    size, bits = 1 << packing, 512 >> packing
    return [sum(v[0] << bits * k for k, v in enumerate(vectors[first:first + size]))
            for first in range(0, len(vectors), size)]


def packets_of(samples, beats, room, credit, packing):
    headers, payload = [], []
    for sample, step, bags in samples:
        fit = (room << packing) // beats
        for start in range(0, len(bags), fit):
            part = bags[start:start + fit]
            last = int(start + fit >= len(bags))
            headers.append({"opcode": int(Opcode.POOLED), "destination": 0, "step": step,
                            "count": len(part), "credit": credit, "empty": 0,
                            "final_beat": 0, "address": 0, "answers": last, "status": 0})
            body = shared(part, packing) if packing else [beat for v in part for beat in v]
            data = [sample | start << 32 | last << 48, *body]
            payload += [{"data": d, "last": int(n == len(data) - 1)} for n, d in enumerate(data)]
    return headers, payload


def run(dut, samples, beats, room, packing=0, *, stall=(0.0, 0.0, 0.0), credit=0x1234):
    headers, payload = packets_of(samples, beats, room, credit, packing)
    taken_headers: list[dict] = []
    taken: list[dict] = []

    async def feed(ctx):
        ctx.set(dut.vector_beats, beats)
        ctx.set(dut.vector_packing, packing)
        ctx.set(dut.credit, credit)
        await sender(dut.i, items_of(samples), stall=stall[0])(ctx)

    async def finish(ctx):
        await receiver(dut.payload, taken, len(payload), stall=stall[2], seed=4)(ctx)
        while len(taken_headers) < len(headers):
            await ctx.tick()
        for _ in range(20):
            assert not ctx.get(dut.payload.valid)
            await ctx.tick()
        assert ctx.get(dut.idle)
        assert ctx.get(dut.counters.samples) == len(samples)
        assert ctx.get(dut.counters.packets) == len(headers)
        assert ctx.get(dut.counters.vectors) == sum(len(bags) for _, _, bags in samples)

    cycles = simulate(powered_up(dut), feed, finish, receiver(
        dut.headers, taken_headers, len(headers), stall=stall[1], seed=3))
    assert taken_headers == headers and taken == payload
    return cycles - 20, len(payload)


STALLS = [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.5), (0.0, 0.9, 0.0), (0.3, 0.3, 0.3)]


def crossed(sizes, stalls):
    """Return each size with all stalls, except two of them, in turn, which are slow."""
    return [pytest.param(*size, stall, marks=() if (k - 2 * n) % len(stalls) < 2 else
                         pytest.mark.slow)
            for n, size in enumerate(sizes) for k, stall in enumerate(stalls)]


@pytest.mark.few(5)
@pytest.mark.parametrize("dimension, beats, room, stall", crossed([
    (16, 1, 63), (16, 1, 5), (48, 3, 63), (64, 4, 63), (64, 4, 5), (64, 2, 8)], STALLS))
def test_packets_of_one_sample_each(dimension, beats, room, stall):
    fit = room // beats
    rng = random.Random(room)
    counts = [1, fit, fit + 1, 2 * fit, 2 * fit + 1, 1] + [rng.randrange(1, 40) for _ in range(6)]
    run(build(dimension, room + 1), samples_of(beats, counts, beats), beats, room, stall=stall)


@pytest.mark.parametrize("dimension, packing, room, stall", crossed([
    (4, 2, 63), (64, 2, 5), (8, 1, 5), (16, 1, 63)], [STALLS[0], STALLS[1], STALLS[4]]))
def test_vectors_that_share_beats(dimension, packing, room, stall):
    fit = room << packing
    rng = random.Random(room + packing)
    counts = [1, fit, fit + 1, 2 * fit - 1, 2, 3, 4, 5] + [rng.randrange(1, 40) for _ in range(6)]
    run(build(dimension, room + 1), samples_of(packing, counts, 1, packing), 1, room, packing,
        stall=stall)


@pytest.mark.parametrize("packing", [1, 2])
def test_a_vector_a_cycle(packing):
    cycles, _ = run(build(16), samples_of(1, [26] * 24, 1, packing), 1, 63, packing)
    assert 26 * 24 / (cycles - 26) >= 0.95


@pytest.mark.few(2)
@pytest.mark.parametrize("beats, bags", [(1, 26), (1, 200), (4, 26)])
def test_a_beat_a_cycle(beats, bags):
    cycles, payload = run(build(16 * beats), samples_of(1, [bags] * (600 // (bags * beats) + 2),
                                                        beats), beats, 63)
    # The first packet leaves when it is complete.
    assert payload / (cycles - min(63, bags * beats)) >= 0.95


def test_an_open_packet_is_idle_and_credit_is_that_of_its_header():
    dut = build(16)
    items = items_of(samples_of(2, [3], 1))

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.credit, 1)
        await sender(dut.i, items[:2])(ctx)
        for _ in range(8):
            await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.headers.valid)
        ctx.set(dut.credit, 2)
        await sender(dut.i, items[2:])(ctx)
        assert not ctx.get(dut.idle)
        for _ in range(8):
            await ctx.tick()
        assert ctx.get(dut.headers.valid) and ctx.get(dut.headers.payload.credit) == 2
        assert ctx.get(dut.payload.valid) and not ctx.get(dut.idle)

    simulate(powered_up(dut), bench)


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not None"):
        ResultPackager(None)
