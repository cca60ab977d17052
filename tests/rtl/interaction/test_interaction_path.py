"""Samples and dense vectors become packets of results: the NIC's blocks in a row, bit by bit."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import beats_of, packing_of, preset
from rtl.formats import DenseSlot, FrameInfo, HostFrame, RawBeat, TaggedBeat
from rtl.interaction import Concatenator, DenseRing, Interaction, PooledBeat, ResultFrames
from tests.rtl.interaction.dots import random_dot_samples, result_beats, vector_beats
from tests.rtl.interaction.results import parsed_results
from tests.rtl.power_up import powered_up
from tests.support import made, sender, simulate


class Path(wiring.Component):
    def __init__(self, config):
        self.config = config
        requests, results = (wiring.Signature({
            "headers": Out(stream.Signature(header)), "payload": Out(stream.Signature(RawBeat))})
            for header in (FrameInfo, HostFrame))
        super().__init__({
            "reserve": In(stream.Signature(DenseSlot)),
            "vectors": In(stream.Signature(TaggedBeat)),
            "pooled": In(stream.Signature(PooledBeat)),
            "vector_beats": In(5), "vector_packing": In(2), "dots": In(1), "itself": In(1),
            "time": In(32), "requests": Out(requests),
            "results": Out(results), "dropped": Out(32), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = DenseRing(self.config)
        m.submodules.concatenator = concatenator = Concatenator()
        m.submodules.interaction = interaction = Interaction(self.config)
        m.submodules.frames = frames = ResultFrames(self.config)
        wiring.connect(m, wiring.flipped(self.reserve), ring.reserve)
        wiring.connect(m, wiring.flipped(self.vectors), ring.vectors)
        wiring.connect(m, wiring.flipped(self.pooled), concatenator.pooled)
        wiring.connect(m, ring.o, concatenator.dense)
        wiring.connect(m, concatenator.o, interaction.i)
        wiring.connect(m, interaction.o, frames.i)
        for block, port in ((ring, self.requests), (frames, self.results)):
            for name in ("headers", "payload"):
                wiring.connect(m, getattr(block, name), wiring.flipped(getattr(port, name)))
        m.d.comb += [
            ring.vector_beats.eq(self.vector_beats), ring.batch.eq(5), ring.timeout.eq(20),
            interaction.vector_packing.eq(self.vector_packing), interaction.dots.eq(self.dots),
            interaction.itself.eq(self.itself), frames.timeout.eq(40),
            self.dropped.eq(interaction.counters.dropped),
            self.idle.eq(ring.idle & concatenator.idle & interaction.idle & frames.idle),
        ]
        for block in (ring, frames):
            m.d.comb += block.time.eq(self.time)
        return m


def joined(samples, dimension):
    """Return the concatenation of each sample: number, step, beats."""
    found = []
    for number, step, vectors in samples:
        values = np.ascontiguousarray(vectors).reshape(-1)
        values = np.concatenate([values, np.zeros(-len(values) % 16, np.uint32)])
        found.append((number, step, [int.from_bytes(beat.tobytes(), "little")
                                     for beat in values.reshape(-1, 16)]))
    return found


def dotted(samples, *, itself, most):
    """Return the dot interaction of each sample by the host's model: number, step, beats."""
    found, beats = [], []
    for item in result_beats(samples, itself=itself, most=most):
        beats.append(item["data"])
        if item["last"]:
            found.append((item["sample"], item["step"], beats))
            beats = []
    return found


def run(dimension, sizes, *, dots, itself=False, stall=0.2, most=33, host_beats=64, seed=0,
        units=2, longest=None):
    dut = made(Path, preset("tiny").with_fields(
        max_dimension=longest or dimension, interaction_vectors=most, dense_vectors=8,
        net_payload_beats=5, host_payload_beats=host_beats, dot_units=units))
    rng = random.Random(seed)
    # Steps advance slowly, as those of mini-batches do.
    samples = [(number, k // 5, vectors) for k, (number, _, vectors) in enumerate(
        random_dot_samples(seed, sizes, dimension))]
    items = vector_beats(samples)
    size, starts = beats_of(dimension), np.cumsum([0, *sizes]) * beats_of(dimension)
    asked: list[int] = []
    got: dict[str, list[dict]] = {"request_headers": [], "requests": [], "headers": [],
                                  "payload": []}
    expected = dotted(samples, itself=itself, most=most) if dots else joined(samples, dimension)
    done = []

    async def clock(ctx):
        """Drive time, and take all output."""
        now = 0
        ports = {"request_headers": dut.requests.headers, "requests": dut.requests.payload,
                 "headers": dut.results.headers, "payload": dut.results.payload}
        while True:
            ready = {name: rng.random() >= stall for name in ports}
            for name, port in ports.items():
                ctx.set(port.ready, ready[name])
            values = await ctx.tick().sample(*[
                part for port in ports.values() for part in (port.valid, port.payload)])
            for k, name in enumerate(ports):
                valid, payload = values[2 + 2 * k:4 + 2 * k]
                if valid and ready[name]:
                    got[name].append({n: payload[n] for n in payload.shape().members})
            now += 1
            ctx.set(dut.time, now)

    async def reserve(ctx):
        ctx.set(dut.vector_beats, size)
        ctx.set(dut.vector_packing, packing_of(dimension) if size == 1 else 0)
        ctx.set(dut.dots, dots)
        ctx.set(dut.itself, itself)
        await sender(dut.reserve, [{"sample": number, "step": step}
                                   for number, step, _ in samples], stall=stall)(ctx)

    async def answer(ctx):
        """Send dense vectors out of order, and some unrequested ones."""
        waiting, at = [], 0
        while len(asked) < len(samples) or waiting:
            taken = sum(-(-header["count"] // 8) for header in got["request_headers"])
            if len(got["requests"]) >= taken > at:
                records = []
                for header in got["request_headers"]:
                    count = header["count"]
                    first = len(records) // 8 * 8 + (8 if len(records) % 8 else 0)
                    records += [None] * (first - len(records))
                    records += [got["requests"][(first + k) // 8]["data"] >> 64 * (k % 8)
                                for k in range(count)]
                numbers = [record & (1 << 64) - 1 for record in records if record is not None]
                for record in numbers[len(asked):]:
                    assert record & 0xFFFFFFFF == samples[len(asked)][0]
                    waiting.append((len(asked), record >> 32))
                    asked.append(record)
                at = taken
            if not waiting or rng.random() < stall:
                await ctx.tick()
                continue
            index, landing = waiting.pop(rng.randrange(len(waiting)))
            start = int(starts[index])
            wild = rng.random() < 0.2
            for tag in (*([200] if wild else []), landing):
                for n, item in enumerate(items[start:start + size]):
                    ctx.set(dut.vectors.payload,
                            {"tag": tag, "data": item["data"], "last": int(n == size - 1)})
                    ctx.set(dut.vectors.valid, 1)
                    await ctx.tick()
                    ctx.set(dut.vectors.valid, 0)

    async def pool(ctx):
        bags = [item for index, vectors in enumerate(sizes)
                for item in items[int(starts[index]) + size:int(starts[index + 1])]]
        await sender(dut.pooled, [{
            "data": item["data"], "beat_last": item["vector_last"], "sample": item["sample"],
            "bag_last_of_sample": item["sample_last"], "step": item["step"]} for item in bags],
            stall=stall, seed=2)(ctx)
        done.append(True)

    async def finish(ctx):
        while not done or not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick().repeat(10)
        dropped = sum(max(0, n - most) for n in sizes) * size if dots else 0
        assert ctx.get(dut.idle) and ctx.get(dut.dropped) == dropped

    simulate(powered_up(dut), reserve, answer, pool, finish, background=[clock])
    assert parsed_results(got["headers"], got["payload"]) == expected
    return got["headers"]


@pytest.mark.thorough
@pytest.mark.parametrize("dimension, itself, sizes", [
    (16, False, [2, 3, 33, 2, 2, 7]),
    *(pytest.param(dimension, itself, [3, 3, 9, 2, 12], marks=pytest.mark.slow)
      for dimension in (4, 8, 16, 64) for itself in (False, True))])
def test_dots(dimension, itself, sizes):
    run(dimension, sizes, dots=True, itself=itself, seed=dimension)


@pytest.mark.few(2)
@pytest.mark.parametrize("dimension", [4, 8, 16, 64])
def test_concatenations(dimension):
    """Results of up to 136 beats: those of more than 63 go in parts. They need no dot units."""
    headers = run(dimension, [2, 3, 33, 2, 34, 7, 20, 20, 5], dots=False, units=0, seed=dimension)
    assert (0x26 in {header["opcode"] for header in headers}) == (dimension == 64)


@pytest.mark.thorough
def test_samples_above_interaction_vectors():
    run(16, [2, 6, 13, 5, 3], dots=True, most=5)


@pytest.mark.slow
def test_dots_in_parts():
    headers = run(16, [9, 12, 3, 9], dots=True, host_beats=5, itself=True, stall=0.4)
    assert {header["opcode"] for header in headers} == {0x25, 0x26}


@pytest.mark.slow
def test_a_shorter_dimension_than_the_longest():
    run(4, [2, 3, 5, 5, 9], dots=False, longest=64)
    run(32, [3, 5, 2], dots=True, longest=64)
