"""Concatenator and flattening of its output, under random stalls."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module

from rtl.config import preset
from rtl.interaction import Concatenator, Interaction, PooledRouter, VectorFlattener
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate

STALLS = [(0.0, 0.0, 0.0), (0.6, 0.0, 0.0), (0.0, 0.6, 0.0), (0.0, 0.0, 0.6), (0.3, 0.3, 0.3)]


def samples_of(sizes, beats, seed, bits=512):
    """Return samples: number, step, and vectors of so many beats, the dense one first."""
    rng = random.Random(seed)
    return [(rng.getrandbits(32), rng.getrandbits(16),
             [[rng.getrandbits(bits) for _ in range(beats)] for _ in range(vectors)])
            for vectors in sizes]


def vector_items(samples):
    return [{"data": beat, "vector_last": int(n == len(vector) - 1),
             "sample_last": int(k == len(vectors) - 1), "sample": number, "step": step, "lost": 0}
            for number, step, vectors in samples
            for k, vector in enumerate(vectors) for n, beat in enumerate(vector)]


def dense_items(samples):
    return [{**item, "sample_last": 1} for item in vector_items(
        [(number, step, vectors[:1]) for number, step, vectors in samples])]


def pooled_items(samples):
    return [{"data": item["data"], "beat_last": item["vector_last"], "sample": item["sample"],
             "bag_last_of_sample": item["sample_last"], "step": item["step"],
             "lost": item["lost"]}
            for item in vector_items([(n, step, vectors[1:]) for n, step, vectors in samples])]


def concatenate(samples, stalls=STALLS[0]):
    dut, taken, found = made(Concatenator), [], {}
    expected = vector_items(samples)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stalls[2], seed=3)(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        found.update(counts_of(ctx, dut.counters))

    cycles = simulate(dut, take, sender(dut.dense, dense_items(samples), stall=stalls[0], seed=1),
                      sender(dut.pooled, pooled_items(samples), stall=stalls[1], seed=2),
                      limit=20_000)
    assert taken == expected
    assert found["samples"] == len(samples) and found["beats_out"] == len(expected)
    return found, cycles - 3


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("beats", [1, 4])
def test_dense_vector_then_bags(beats, stalls):
    rng = random.Random(beats)
    found, _ = concatenate(samples_of([2, 33, 2, 2, 3] + [
        rng.randrange(2, 12) for _ in range(10)], beats, beats), stalls)
    # If dense vectors are late, pooled vectors wait; at full rate dense vectors are in time.
    assert (found["stall_dense"] > 0) == (stalls[0] > 0)


@pytest.mark.parametrize("sizes", [[2] * 120, [27] * 9])
def test_a_beat_a_cycle_across_samples(sizes):
    _, cycles = concatenate(samples_of(sizes, 1, 5))
    assert sum(sizes) / cycles >= 0.97


def flat(samples, packing):
    """Return the results: whole beats, or 2 or 4 vectors a beat."""
    items = []
    for number, step, vectors in samples:
        beats = [beat for vector in vectors for beat in vector]
        if packing:
            size, bits = 1 << packing, 512 >> packing
            beats = [sum(beat << bits * k for k, beat in enumerate(beats[n:n + size]))
                     for n in range(0, len(beats), size)]
        items += [{"data": beat, "last": int(n == len(beats) - 1), "sample": number, "step": step,
                   "lost": 0}
                  for n, beat in enumerate(beats)]
    return items


def flatten(dut, samples, packing, stalls):
    taken, expected = [], flat(samples, packing)

    async def feed(ctx):
        ctx.set(dut.vector_packing, packing)
        await sender(dut.i, vector_items(samples), stall=stalls[0])(ctx)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stalls[2])(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    cycles = simulate(powered_up(dut), feed, take, limit=20_000)
    assert taken == expected
    return cycles - 3


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[1], STALLS[3], STALLS[4]])
@pytest.mark.parametrize("dimension, packing", [(4, 2), (8, 1), (16, 0), (64, 0)])
def test_vectors_as_they_are(dimension, packing, stalls):
    rng = random.Random(dimension)
    sizes = [1, 2, 3, 4, 5, 33, 1, 8, *(rng.randrange(1, 12) for _ in range(8))]
    samples = samples_of(sizes, max(1, dimension // 16), dimension, 32 * min(16, dimension))
    flatten(made(VectorFlattener), samples, packing, stalls)


@pytest.mark.parametrize("packing", [0, 1, 2])
def test_a_vector_a_cycle(packing):
    cycles = flatten(made(VectorFlattener), samples_of([7] * 40, 1, 1, 512 >> packing), packing,
                     STALLS[0])
    assert 280 / cycles >= 0.97


def test_without_dot_units_vectors_stay_as_they_are():
    dut = made(Interaction, preset("tiny").with_fields(dot_units=0))
    samples = samples_of([1, 3, 40, 2], 4, 6)
    counters: dict[str, int] = {}

    async def bench(ctx):
        ctx.set(dut.dots, 1)
        taken: list[dict] = []
        await receiver(dut.o, taken, len(flat(samples, 0)))(ctx)
        assert taken == flat(samples, 0)
        await ctx.tick().repeat(3)
        counters.update(counts_of(ctx, dut.counters))
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), bench, sender(dut.i, vector_items(samples)))
    assert counters == counters | {
        "samples": 4, "beats_in": 184, "beats_out": 184, "dropped": 0, "stall_output": 0}


@pytest.mark.parametrize("interact", [0, 1])
def test_pooled_vectors_go_one_way(interact):
    m, dut, taken = Module(), made(PooledRouter), []
    m.domains.sync, m.submodules.dut = ClockDomain("sync"), dut
    items = pooled_items(samples_of([4, 3], 2, 7))

    async def feed(ctx):
        ctx.set(dut.interact, interact)
        await sender(dut.i, items, stall=0.2)(ctx)

    async def never(ctx):
        while True:
            ctx.set((dut.packets, dut.vectors)[1 - interact].ready, 1)
            assert not ctx.get((dut.packets, dut.vectors)[1 - interact].valid)
            await ctx.tick()

    simulate(m, feed, receiver((dut.packets, dut.vectors)[interact], taken, len(items),
                                 stall=0.4), background=[never])
    assert taken == items


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not None"):
        Interaction(None)
