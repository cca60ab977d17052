"""VectorDecoder: the values of the codecs, in order, under random stalls."""

import random

import numpy as np
import pytest

from host.dlrm.codecs import CODECS
from host.model import padded
from rtl.formats import ValueFormat
from rtl.interaction import SlotBeat, VectorDecoder, slot_beat
from tests.support import made, quiet_while_idle, receiver, sender, simulate

FORMATS = {form.name.lower(): form for form in ValueFormat}
CODES = ["int8", "int8_row"]
HALVES = [wire for wire in FORMATS if wire not in CODES]
STALLS = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)]
SETTLED = 6
"""Cycles from the settings to the first vector."""
FIELDS = {"kind": 2, "sample": 32, "step": 16, "sample_last": 1, "lost": 1}


def beats_of(lanes: np.ndarray, rest: dict) -> list[dict]:
    """Return the beats of a vector, uint32 ``[lanes]``, with the other fields of its slot."""
    beats = np.zeros(-(-len(lanes) // 16) * 16, np.uint32)
    beats[:len(lanes)] = lanes
    return [{"data": int.from_bytes(beat.tobytes(), "little"),
             "beat_last": int(16 * (number + 1) == len(beats)), **rest}
            for number, beat in enumerate(beats.reshape(-1, 16))]


def vectors(wire: str, dimension: int, count: int, bags: bool) -> tuple[list, list]:
    """Return the beats of random vectors of any bits, and the same vectors as float32."""
    rng, numbers = random.Random(dimension), np.random.default_rng(dimension)
    codec, beats, expected = CODECS[wire], [], []
    lanes = padded(codec.lanes(dimension))
    fields = FIELDS | ({"keys": 16, "mean": 1} if bags else {})
    for _ in range(count):
        words = np.zeros((1, lanes), np.uint32)
        words[0, :codec.lanes(dimension)] = numbers.integers(
            0, 1 << 32, codec.lanes(dimension), dtype=np.uint32) * (rng.random() < 0.9)
        rest = {name: rng.getrandbits(bits) for name, bits in fields.items()}
        beats += beats_of(words[0], rest)
        expected += beats_of(codec.decode(words, dimension)[0].view(np.uint32), rest)
    return beats, expected


def decode(wire: str, dimension: int, stalls: tuple[float, float] = (0.0, 0.0),
           count: int = 40, bags: bool = False) -> tuple[int, int]:
    """Check the float32 vectors; return cycles, and beats out."""
    dut, taken = made(VectorDecoder, slot_beat(bags), 32 if wire in CODES else 16,
                      codes=wire in CODES), []
    beats, expected = vectors(wire, dimension, count, bags)

    async def take(ctx):
        ctx.set(dut.value_format, FORMATS[wire])
        ctx.set(dut.value_beats, -(-dimension // 16))
        if wire in CODES:
            ctx.set(dut.value_count, dimension)
        await receiver(dut.o, taken, len(expected), stall=stalls[1], seed=3)(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    async def give(ctx):
        await ctx.tick().repeat(SETTLED)
        await sender(dut.i, beats, stall=stalls[0], seed=1)(ctx)

    cycles = simulate(dut, take, give, limit=9000, background=[
        quiet_while_idle(dut.idle, [dut.i.valid], [dut.o.valid & dut.o.ready])])
    assert taken == expected
    return cycles - SETTLED - 3, len(expected)


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("wire", HALVES)
@pytest.mark.parametrize("dimension", [16, 32, 48, 80])
def test_vectors_are_those_of_the_codec(wire, dimension, stalls):
    """1, 2, 3 and 5 beats of float32; the lanes of an odd number leave half a beat unused."""
    decode(wire, dimension, stalls)


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("wire", CODES)
@pytest.mark.parametrize("dimension", [16, 40, 64, 129])
def test_codes_have_their_scale_and_bias(wire, dimension, stalls):
    """Pairs behind the codes of a beat, and in beats of their own."""
    decode(wire, dimension, stalls)


@pytest.mark.parametrize("wire", CODES)
@pytest.mark.parametrize("dimension", [1, 7, 31, 33, 48, 49, 56, 57, 65, 100, 500, 512])
def test_codes_of_each_length(wire, dimension):
    decode(wire, dimension, (0.2, 0.2), count=12, bags=True)


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("dimension", [4, 8, 256])
def test_shortest_and_longest_vectors(wire, dimension):
    decode(wire, dimension, (0.2, 0.2), bags=True)


@pytest.mark.parametrize("wire", FORMATS)
def test_a_beat_a_cycle(wire):
    for dimension, count in ((64, 100), (16, 300)):
        cycles, beats = decode(wire, dimension, count=count)
        late = max(VectorDecoder.LATENCY.values())
        assert beats == dimension * count // 16 and cycles <= beats + late + 3


@pytest.mark.parametrize(("wire", "data"), [
    ("float16", 0x3C00 << 256),
    # 32 codes in 8 lanes, then a scale of 1 and a bias of 0.
    ("int8", 1 << 128 | 0x3F800000 << 256)])
def test_latency(wire, data):
    coded = wire in CODES
    dut, found = made(VectorDecoder, SlotBeat, 4, codes=coded), {}

    async def bench(ctx):
        ctx.set(dut.value_format, FORMATS[wire])
        ctx.set(dut.value_beats, 2)
        if coded:
            ctx.set(dut.value_count, 32)
        await ctx.tick().repeat(SETTLED)
        ctx.set(dut.i.payload, {"data": data, "beat_last": 1, "sample": 5})
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        found["cycles"] = 1
        while not ctx.get(dut.o.valid):
            await ctx.tick()
            found["cycles"] += 1
        ctx.set(dut.o.ready, 1)
        first, = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
        second, = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
        assert (first.data, first.beat_last, second.data, second.beat_last) == (
            0, 0, 0x3F800000, 1)
        assert first.sample == second.sample == 5

    simulate(dut, bench)
    assert found["cycles"] == list(VectorDecoder.LATENCY.values())[coded]
