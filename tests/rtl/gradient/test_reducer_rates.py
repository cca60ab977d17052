"""GradientReducer: beats per cycle, and latency."""

import random
from collections import Counter

import pytest

from rtl.gradient import GradientReducer
from tests.rtl.gradient.reducing import key_of, power_law, set_of, vectors_of
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate

BEATS = 300
READING_OUT = 29


def beats_per_cycle(numbers, *, beats: int = 1, **sizes) -> float:
    """Return the vectors' beats by the cycles from the first to the last."""
    dut = GradientReducer(**sizes, beats=beats, lanes=1)
    items = [{"key": key_of(key), "step": 3, "data": int(data[n, 0]), "last": int(n == beats - 1)}
             for key, data in vectors_of(numbers, beats, 1, ["gaussian"], 1) for n in range(beats)]
    answers: list[dict] = []
    cycles = []

    async def send(ctx):
        ctx.set(dut.vector_beats, beats)
        await sender(dut.i, items)(ctx)
        await sender(dut.flush, [3])(ctx)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        cycle = 0
        async for _, _, valid, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            cycle += 1
            if valid and ready:
                cycles.append(cycle)

    simulate(powered_up(dut), send, receiver(dut.flushed, answers, 1), background=[watch])
    assert answers[0]["step"] == 3
    # The first two beats find room before the sets are swept.
    start, done = cycles[2], cycles[-1]
    return (len(items) - 2) / (done - start + 1)


def shared(share: float) -> list[int]:
    """Return keys of which one has ``share``, the others follow a power law."""
    rng = random.Random(2)
    return [0 if rng.random() < share else 1 + key for key in power_law(BEATS, 400, 3)]


NUMBERS = {"power law": power_law(BEATS, 300, 4), "1 %": shared(0.01), "50 %": shared(0.5),
           "100 %": shared(1.0), "two in turn": [1, 2] * (BEATS // 2)}


@pytest.mark.parametrize("numbers, rounded", [
    *((name, False) for name in NUMBERS), ("power law", True), ("1 %", True)])
def test_a_beat_a_cycle(numbers, rounded):
    """Of the power laws, every fourth beat or so retires an entry."""
    assert beats_per_cycle(NUMBERS[numbers], keys=64, ways=8, rounded=rounded) >= 0.9


def test_vectors_of_four_beats():
    assert beats_per_cycle(power_law(80, 60, 4), beats=4, keys=16, ways=8, rounded=True) >= 0.9


def test_reading_out():
    """From the flush to its answer: the keys, a cycle for each empty set, and what is constant."""
    dut = GradientReducer(16, 2, rounded=True, lanes=1)
    numbers = [1, 3, 7, 8, 0]
    sets = Counter(set_of(number, 8) for number in numbers)
    assert max(sets.values()) == 2
    cycles = []

    async def bench(ctx):
        for number in numbers:
            await sender(dut.i, [{"key": key_of(number), "step": 0, "data": 1, "last": 1}])(ctx)
        await ctx.tick().repeat(20)
        await sender(dut.flush, [0])(ctx)
        while not ctx.get(dut.flushed.valid):
            cycles.append(0)
            await ctx.tick()

    async def take(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(1000)

    simulate(powered_up(dut), bench, background=[take])
    assert len(cycles) + 1 == len(numbers) + (8 - len(sets)) + READING_OUT


@pytest.mark.parametrize("rounded, latency", [(False, 29), (True, 30)])
def test_latency(rounded, latency):
    """From the beat that retires an entry to the first term of what was in it."""
    dut = GradientReducer(2, 1, rounded=rounded, lanes=1)
    old, new = [number for number in range(20) if set_of(number, 2) == 1][:2]

    async def bench(ctx):
        async def add(number):
            ctx.set(dut.i.payload,
                    {"key": key_of(number), "step": 0, "data": 1 + number, "last": 1})
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)

        ctx.set(dut.o.ready, 1)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await add(old)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await add(new)
        waited = 1
        while not ctx.get(dut.o.valid):
            assert not ctx.get(dut.idle)
            await ctx.tick()
            waited += 1
        term = ctx.get(dut.o.payload)
        assert (term.data, term.partial, term.last) == (1 + old, 1, 1)
        assert waited == latency

    simulate(powered_up(dut), bench, limit=1000)
