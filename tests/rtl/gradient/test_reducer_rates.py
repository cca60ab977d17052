"""GradientReducer: beats per cycle, and latency."""

import random
from collections import Counter

import pytest

from rtl.gradient import GradientReducer
from tests.rtl.gradient.reducing import (
    key_of,
    offered,
    power_law,
    same_set,
    set_of,
    shuffled,
    vectors_of,
)
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

BEATS = 200
OPENING = 1
"""Cycle in which the first beat opens its step."""
READING_OUT = 20
PASSING_ON = 10


def beats_per_cycle(items, **sizes) -> tuple[float, int]:
    """Return the beats per cycle from the first to the last, without the beat that opens the step,
    and the number of beats passed on."""
    dut = made(GradientReducer, **sizes, lanes=1)
    answers: list[dict] = []
    cycles = []

    async def send(ctx):
        while not ctx.get(dut.idle):
            await ctx.tick()
        await sender(dut.i, offered(items, 3))(ctx)
        await sender(dut.flush, [3])(ctx)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.passed.ready, 1)
        cycle = 0
        async for _, _, valid, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            cycle += 1
            if valid and ready:
                cycles.append(cycle)

    simulate(powered_up(dut), send, receiver(dut.flushed, answers, 1), background=[watch])
    assert len(cycles) == len(items)
    return len(items) / (cycles[-1] - cycles[0] + 1 - OPENING), answers[0]["passed"]


def shared(share: float) -> list[int]:
    """Return keys: one has ``share``, the others follow a power law."""
    rng = random.Random(2)
    return [0 if rng.random() < share else 1 + key for key in power_law(BEATS, 400, 3)]


NUMBERS = {"power law": power_law(BEATS, 300, 4), "1 %": shared(0.01), "50 %": shared(0.5),
           "100 %": shared(1.0), "two in turn": [1, 2] * (BEATS // 2),
           "one set": same_set(40, 8) * (BEATS // 40)}


@pytest.mark.few(3)
@pytest.mark.parametrize("numbers, split", [(name, name == "power law") for name in NUMBERS])
def test_a_beat_a_cycle(numbers, split):
    """Also where most are passed on, of those of one set all but the first keys' beats."""
    items = vectors_of(NUMBERS[numbers], 1, 1, ["gaussian"], 1)
    rate, passed = beats_per_cycle(items, keys=64, ways=8, split=split)
    assert rate == 1
    if numbers == "one set":
        assert passed == BEATS - 8 * (BEATS // 40)


def test_vectors_of_four_beats():
    items = shuffled(vectors_of(power_law(40, 60, 4), 4, 1, ["gaussian"], 1), 2)
    assert beats_per_cycle(items, keys=16, ways=8, beats=4, split=False)[0] == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("beats, lanes", [(1, 1), (2, 1), (2, 2)])
def test_reading_out(beats, lanes):
    """From the flush to its answer: the beats, a cycle for each empty set, and what is constant."""
    dut = made(GradientReducer, 16, 2, beats=beats, split=False, lanes=lanes)
    numbers = [1, 3, 7, 8, 0]
    sets = Counter(set_of(number, 8) for number in numbers)
    assert max(sets.values()) == 2
    cycles = []

    async def bench(ctx):
        await sender(dut.i, offered(vectors_of(numbers, beats, lanes, ["gaussian"], 1), 0))(ctx)
        await ctx.tick().repeat(20)
        await sender(dut.flush, [0])(ctx)
        while not ctx.get(dut.flushed.valid):
            cycles.append(0)
            await ctx.tick()

    async def take(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(1000)

    simulate(powered_up(dut), bench, background=[take])
    turns = len(numbers) * beats * lanes
    # A set may be found empty while the previous beat leaves.
    empty = 8 - len(sets)
    assert turns + empty * (lanes == 1) <= len(cycles) + 1 - READING_OUT <= turns + empty


def test_latency():
    """Of a beat that is passed on."""
    dut = made(GradientReducer, 2, 1, split=False, lanes=1)
    old, new = same_set(2, 2)

    async def bench(ctx):
        async def add(number):
            ctx.set(dut.i.payload, offered([(number, 0, 7)], 0)[0])
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)

        ctx.set(dut.passed.ready, 1)
        for number in (old, new):
            while not ctx.get(dut.idle):
                await ctx.tick()
            await add(number)
        waited = 1
        while not ctx.get(dut.passed.valid):
            assert not ctx.get(dut.idle)
            await ctx.tick()
            waited += 1
        assert ctx.get(dut.passed.payload.key.row) == key_of(new)["row"]
        assert waited == PASSING_ON

    simulate(powered_up(dut), bench, limit=1000)
