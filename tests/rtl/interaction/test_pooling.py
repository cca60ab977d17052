"""Pooler against numpy: sums and means in slot order and bag order, under random stalls."""

import random

import pytest

from rtl.config import preset
from rtl.interaction import Pooler
from tests.rtl.interaction.bags import pooled_beats, random_samples, slot_beats
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate


def run(samples, beats, *, stall=(0.0, 0.0), dimension=64, queue_beats=64, seed=0,
        mean=False):
    dut = made(Pooler, preset("tiny").with_fields(max_dimension=dimension), queue_beats=queue_beats)
    items, expected = slot_beats(samples, beats), pooled_beats(samples, beats, mean=mean)
    taken: list[dict] = []
    end: dict[str, int] = {}

    async def feed(ctx):
        ctx.set(dut.vector_beats, beats)
        ctx.set(dut.mean, mean)
        await sender(dut.i, items, stall=stall[0], seed=seed)(ctx)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall[1], seed=seed + 1)(ctx)
        for _ in range(40):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        assert ctx.get(dut.idle)
        end.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut, seed), feed, take)
    assert taken == expected
    assert end["beats_in"] == len(items) and end["beats_out"] == len(expected)
    assert end["adds"] == len(items) - len(expected)


def random_sizes(rng, keys, longest):
    sizes, total = [], 0
    while total < keys:
        sizes.append([rng.choice((0, 1, 1, 2, rng.randrange(longest + 1)))
                      for _ in range(rng.randrange(1, 12))])
        total += sum(sizes[-1])
    return sizes


@pytest.mark.thorough
@pytest.mark.few(3)
@pytest.mark.parametrize("dimension, beats, stall, mean", [
    (16, 1, (0.5, 0.0), False), (48, 3, (0.0, 0.6), False), pytest.param(
        64, 4, (0.0, 0.0), False, marks=pytest.mark.slow),
    (64, 2, (0.3, 0.3), False), (16, 1, (0.3, 0.4), True), (48, 3, (0.0, 0.0), True)])
def test_bags_are_pooled_in_slot_order(dimension, beats, stall, mean):
    sizes = random_sizes(random.Random(beats), 120 // beats, 40)
    run(random_samples(dimension, sizes, beats), beats, stall=stall, dimension=dimension,
        mean=mean)


@pytest.mark.parametrize("beats, mean", [
    (5, False), (9, True), pytest.param(16, True, marks=pytest.mark.slow)])
def test_long_vectors(beats, mean):
    """From eight beats on a single bag has all turns."""
    sizes = [[1, 3], [0]]
    run(random_samples(beats, sizes, beats), beats, dimension=256, queue_beats=32, mean=mean)


@pytest.mark.parametrize("beats, mean", [(1, False), (4, True)])
def test_any_bits(beats, mean):
    """NaN, infinities and subnormals; the sum of one key keeps even the bits of a NaN."""
    sizes = [[1, 2, 0, 3, 1]] * (12 // beats)
    samples = random_samples(3, sizes, beats, bits=True)
    for _, _, bags in samples:
        bags[0][0, :4] = (0x7F800001, 0xFFFFFFFF, 0x80000000, 0x00000001)
        bags[1][:, :3] = ((0x7F800000, 0x7FC01234, 0x80000000),
                          (0xFF800000, 0x3F800000, 0x80000000))
    run(samples, beats, mean=mean)


@pytest.mark.thorough
def test_bags_longer_than_the_queue():
    run(random_samples(1, [[60, 1, 33, 0]], 1), 1, queue_beats=32)
    run(random_samples(1, [[12, 1, 5, 0]], 4), 4, queue_beats=32, mean=True)


def test_more_bags_than_numbers_behind_a_long_one():
    """Bags that end before the one in front of them wait for it, until there is no number left."""
    run(random_samples(1, [[40] + [1] * 90 + [0] * 40], 1), 1)


def test_an_unfinished_bag_is_idle():
    dut = made(Pooler, preset("tiny"))
    items = slot_beats(random_samples(4, [[3]], 1), 1)

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        await sender(dut.i, items[:2])(ctx)
        assert not ctx.get(dut.idle)
        for _ in range(24):
            await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        await sender(dut.i, items[2:])(ctx)
        for _ in range(24):
            await ctx.tick()
        assert ctx.get(dut.o.valid) and not ctx.get(dut.idle)
        assert ctx.get(dut.counters.adds) == 2

    simulate(powered_up(dut), bench)


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 4"):
        Pooler(4)
    with pytest.raises(ValueError, match="queue_beats must be a power of two between 32 and "
                                         "16384, not 12"):
        Pooler(preset("tiny"), queue_beats=12)
    with pytest.raises(TypeError, match="queue_beats must be an integer, not '8'"):
        Pooler(preset("tiny"), queue_beats="8")
