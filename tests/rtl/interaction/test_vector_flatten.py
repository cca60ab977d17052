"""VectorFlattener: the values of a sample's vectors, one after the other, 16 per beat."""

import random

import numpy as np
import pytest

from rtl.interaction.vector_flatten import VectorFlattener
from tests.rtl.interaction.dots import vector_beats
from tests.support import made, receiver, sender, simulate

LANES = 16


def samples_of(dimension: int, sizes: list[int], seed: int) -> list:
    """Return samples of so many vectors: number, step, and vectors, uint32 [n, dimension]."""
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(1 << 32)), int(rng.integers(1 << 16)),
             rng.integers(1, 1 << 32, (size, dimension), dtype=np.uint32)) for size in sizes]


def flat(samples: list) -> list[dict]:
    items = []
    for sample, step, vectors in samples:
        values = vectors.ravel()
        beats = np.zeros(-(-len(values) // LANES) * LANES, np.uint32)
        beats[:len(values)] = values
        beats = beats.reshape(-1, LANES)
        items += [{"data": int.from_bytes(beat.tobytes(), "little"), "sample": sample,
                   "step": step, "last": int(k == len(beats) - 1), "lost": 0}
                  for k, beat in enumerate(beats)]
    return items


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("dimension, packing", [(4, 2), (8, 1), (16, 0), (48, 0)])
def test_values_in_order_and_zeros_after_the_last(dimension, packing, stall):
    dut = made(VectorFlattener)
    sizes = [*range(1, 12), 1, 1, 4, 27, *random.Random(dimension).choices(range(1, 9), k=20)]
    samples = samples_of(dimension, sizes, dimension)
    items, expected, taken = vector_beats(samples), flat(samples), []

    async def feed(ctx):
        ctx.set(dut.vector_packing, packing)
        await sender(dut.i, items, stall=stall)(ctx)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall)(ctx)
        assert ctx.get(dut.idle)

    cycles = simulate(dut, feed, take)
    assert taken == expected
    if not stall:
        assert cycles <= len(items) + 4, "a beat in per cycle"


def test_a_beat_that_is_not_full_waits_and_is_idle():
    dut = made(VectorFlattener)
    samples = samples_of(8, [3], 1)
    items, taken = vector_beats(samples), []

    async def bench(ctx):
        ctx.set(dut.vector_packing, 1)
        await sender(dut.i, items[:1])(ctx)
        for _ in range(20):
            assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
            await ctx.tick()
        await sender(dut.i, items[1:])(ctx)

    simulate(dut, bench, receiver(dut.o, taken, 2))
    assert taken == flat(samples)
