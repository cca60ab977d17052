"""DotInteraction bit for bit against the host's model, under random stalls."""

import pytest

from rtl.config import preset
from rtl.interaction.dot_interaction import DotInteraction
from tests.rtl.interaction.dots import random_dot_samples, result_beats, vector_beats
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate


def config(most, units, dimension):
    return preset("tiny").with_fields(
        interaction_vectors=most, dot_units=units, max_dimension=dimension)


def run(sizes, most, units, dimension, *, longest=None, itself=False, stall=(0.0, 0.0), seed=0):
    dut = DotInteraction(config(most, units, longest or dimension))
    samples = random_dot_samples(seed, sizes, dimension)
    items, taken = vector_beats(samples), []
    expected = result_beats(samples, itself=itself, most=most)
    end: dict[str, int] = {}

    async def feed(ctx):
        ctx.set(dut.itself, itself)
        await sender(dut.i, items, stall=stall[0], seed=seed)(ctx)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall[1], seed=seed + 1)(ctx)
        for _ in range(20):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        assert ctx.get(dut.idle)
        end.update({n: ctx.get(dut.counters[n]) for n in dut.counters.shape().members})

    cycles = simulate(powered_up(dut, seed), feed, take)
    for k, (got, right) in enumerate(zip(taken, expected, strict=True)):
        assert got == right, f"beat {k}"
    assert end["beats_in"] == len(items) and end["beats_out"] == len(expected)
    assert end["samples"] == len(sizes)
    dropped = sum(max(0, n - most) for n in sizes) * dimension // 16
    assert end["dropped"] == dropped
    return cycles


@pytest.mark.parametrize("itself", [False, True], ids=["apart", "itself"])
@pytest.mark.parametrize("stall", [(0.0, 0.0), (0.4, 0.0), (0.0, 0.6), (0.3, 0.3)])
def test_mixed_samples_of_one_slice(stall, itself):
    run([1, 2, 5, 3, 13, 1, 1, 13, 2, 2, 4, 10], 13, 2, 16, itself=itself, stall=stall)
