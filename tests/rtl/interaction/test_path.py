"""Hold buffer, pooler and packager in a row: samples in any order of arrival become packets."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import preset
from rtl.formats import HoldSlot, HostFrame, RawBeat, RecordKind, TaggedBeat
from rtl.interaction import HoldBuffer, Pooler, ResultPackager
from tests.rtl.interaction.bags import pooled_beats, random_samples, slot_beats
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, simulate


class Path(wiring.Component):
    def __init__(self, config):
        self.config = config
        super().__init__({
            "reserve": In(stream.Signature(HoldSlot)), "next_landing": Out(16),
            "remote": In(stream.Signature(TaggedBeat)), "vector_beats": In(4),
            "headers": Out(stream.Signature(HostFrame)), "payload": Out(stream.Signature(RawBeat)),
            "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.hold = hold = HoldBuffer(self.config)
        m.submodules.pooler = pooler = Pooler(self.config, queue_beats=32)
        m.submodules.results = results = ResultPackager(self.config)
        wiring.connect(m, wiring.flipped(self.reserve), hold.reserve)
        wiring.connect(m, wiring.flipped(self.remote), hold.remote)
        wiring.connect(m, hold.o, pooler.i)
        wiring.connect(m, pooler.o, results.i)
        wiring.connect(m, results.headers, wiring.flipped(self.headers))
        wiring.connect(m, results.payload, wiring.flipped(self.payload))
        m.d.comb += [
            self.next_landing.eq(hold.next_landing),
            self.idle.eq(hold.idle & pooler.idle & results.idle),
        ]
        for block in (hold, pooler, results):
            m.d.comb += block.vector_beats.eq(self.vector_beats)
        return m


@pytest.mark.thorough
@pytest.mark.parametrize("dimension, beats, stall", [
    pytest.param(16, 1, 0.0, marks=pytest.mark.slow),
    pytest.param(16, 1, 0.5, marks=pytest.mark.slow), (48, 3, 0.2)])
def test_samples_become_packets(dimension, beats, stall):
    dut = made(Path, preset("tiny").with_fields(
        max_dimension=dimension, hold_vectors=32, net_payload_beats=7, host_payload_beats=8))
    rng = random.Random(dimension)
    samples = random_samples(1, [[rng.choice((0, 1, 1, 2, 3, 11)) for _ in range(
        rng.randrange(1, 14))] for _ in range(24 // beats)], beats)
    items = slot_beats(samples, beats)
    slots = [items[n:n + beats] for n in range(0, len(items), beats)]
    waiting: list[tuple[int, list]] = []
    reserved = [0]

    async def reserve(ctx):
        ctx.set(dut.vector_beats, beats)
        for slot in slots:
            ctx.set(dut.reserve.payload, {
                "kind": slot[0]["kind"], "sample": slot[0]["sample"], "step": slot[0]["step"],
                "last": slot[0]["sample_last"]})
            ctx.set(dut.reserve.valid, 1)
            landing, = await ctx.tick().sample(dut.next_landing).until(dut.reserve.ready)
            ctx.set(dut.reserve.valid, 0)
            reserved[0] += 1
            if slot[0]["kind"] != RecordKind.EMPTY:
                waiting.append((landing, slot))

    async def answer(ctx):
        while waiting or reserved[0] < len(slots):
            if not waiting or rng.random() < stall:
                await ctx.tick()
                continue
            landing, slot = waiting.pop(rng.randrange(len(waiting)))
            for beat in slot:
                ctx.set(dut.remote.payload,
                        {"tag": landing, "data": beat["data"], "last": beat["beat_last"]})
                ctx.set(dut.remote.valid, 1)
                await ctx.tick()
                ctx.set(dut.remote.valid, 0)

    per_packet = 7 // beats
    packets = []  # (header fields, tag, beats)
    pooled = iter(pooled_beats(samples, beats))
    for sample, step, bags in samples:
        for first in range(0, len(bags), per_packet):
            number = min(per_packet, len(bags) - first)
            last = int(first + number == len(bags))
            packets.append(((step, number), sample | first << 32 | last << 48,
                            [next(pooled)["data"] for _ in range(number * beats)]))
    headers: list[dict] = []
    payload: list[dict] = []

    async def finish(ctx):
        await receiver(dut.payload, payload, sum(len(p[2]) + 1 for p in packets),
                       stall=stall, seed=5)(ctx)
        while len(headers) < len(packets):
            await ctx.tick()
        for _ in range(20):
            await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.payload.valid)

    simulate(powered_up(dut), reserve, answer, finish,
             receiver(dut.headers, headers, len(packets), stall=stall, seed=6))
    assert [(h["step"], h["count"]) for h in headers] == [p[0] for p in packets]
    assert [p["data"] for p in payload] == [d for p in packets for d in (p[1], *p[2])]
