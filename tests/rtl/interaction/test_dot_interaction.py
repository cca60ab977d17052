"""DotInteraction bit for bit against the host's model, under random stalls."""

import pytest

from rtl.config import preset
from rtl.interaction.dot_interaction import DotInteraction
from tests.rtl.interaction.dots import random_dot_samples, result_beats, vector_beats
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate


def config(most, units, dimension):
    return preset("tiny").with_fields(
        interaction_vectors=most, dot_units=units, max_dimension=dimension)


def run(sizes, most, units, dimension, *, longest=None, itself=False, stall=(0.0, 0.0), seed=0):
    dut = made(DotInteraction, config(most, units, longest or dimension))
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
        end.update(counts_of(ctx, dut.counters))

    cycles = simulate(powered_up(dut, seed), feed, take)
    for k, (got, right) in enumerate(zip(taken, expected, strict=True)):
        assert got == right, f"beat {k}"
    assert end["beats_in"] == len(items) and end["beats_out"] == len(expected)
    assert end["samples"] == len(sizes)
    dropped = sum(max(0, n - most) for n in sizes) * -(-dimension // 16)
    assert end["dropped"] == dropped
    return cycles


@pytest.mark.thorough
@pytest.mark.parametrize("itself, stall", [
    pytest.param(False, (0.0, 0.0), marks=pytest.mark.slow),
    pytest.param(True, (0.4, 0.0), marks=pytest.mark.slow),
    pytest.param(False, (0.0, 0.6), marks=pytest.mark.slow), (True, (0.3, 0.3))])
def test_mixed_samples_of_one_slice(itself, stall):
    """66 dots, of 12 vectors or of 11 and themselves: the last group of 3 fills a beat and begins
    another."""
    run([1, 2, 5, 3, 13, 1, 1, 12, 2, 2, 4, 11], 13, 3, 16, itself=itself, stall=stall)


@pytest.mark.thorough
@pytest.mark.parametrize("itself, dimension, stall", [
    pytest.param(True, 32, (0.0, 0.4), marks=pytest.mark.slow),
    (False, 48, (0.3, 0.0)), pytest.param(True, 8, (0.0, 0.0), marks=pytest.mark.slow)])
def test_mixed_samples_of_several_slices(itself, dimension, stall):
    """Fewer beats than there may be; few pairs, whose sums are awaited; other slices at once."""
    run([3, 1, 2, 9, 5, 2, 4, 9], 9, 2, dimension, longest=48, itself=itself, stall=stall)


@pytest.mark.slow
def test_more_vectors_than_there_may_be():
    """They are dropped, and the result is that of the others."""
    run([2, 6, 5, 13, 3], 5, 2, 16)
    run([2, 6, 5, 9], 5, 2, 32, longest=32, itself=True, stall=(0.2, 0.2))


@pytest.mark.slow
def test_room_for_results_runs_out():
    """A sink that takes little: groups wait for room, whose count comes back to what it was."""
    dut = made(DotInteraction, config(7, 3, 16))
    samples = random_dot_samples(3, [7] * 45, 16)
    items, expected, taken = vector_beats(samples), result_beats(samples), []

    async def take(ctx):
        await ctx.tick().repeat(340)
        assert ctx.get(dut.counters.stall_output) > 30
        assert ctx.get(dut.counters.stall_input) > 30
        await receiver(dut.o, taken, len(expected))(ctx)

    simulate(powered_up(dut), sender(dut.i, items), take)
    assert taken == expected


@pytest.mark.thorough
def test_an_unfinished_sample_is_idle():
    dut = made(DotInteraction, config(8, 2, 32))
    samples = random_dot_samples(4, [3], 32)
    items, expected, taken = vector_beats(samples), result_beats(samples), []

    async def bench(ctx):
        await sender(dut.i, items[:4])(ctx)
        assert not ctx.get(dut.idle)
        # The dense vector may leave before there are dots.
        await receiver(dut.o, taken, 2)(ctx)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        await sender(dut.i, items[4:])(ctx)
        assert not ctx.get(dut.idle)
        await receiver(dut.o, taken, len(expected))(ctx)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), bench)
    assert taken == expected


@pytest.mark.slow
@pytest.mark.parametrize("most, units, dimension, sizes, itself", [
    (27, 13, 16, [27, 3], False), (20, 16, 16, [20, 2], True), (64, 2, 16, [64, 3], False),
    (64, 1, 32, [40, 64], False), (33, 2, 128, [16, 2, 9], True), (6, 2, 256, [6, 2, 5], False)])
def test_sizes_of_models(most, units, dimension, sizes, itself):
    """Each at its end: units, vectors or slices. All at once take Amaranth's simulator hours; many
    samples of many units are compiled in ``test_dot_compiled``."""
    run(sizes, most, units, dimension, itself=itself, stall=(0.1, 0.1))


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 4"):
        DotInteraction(4)
