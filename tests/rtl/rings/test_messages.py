"""RingMessages: the host's records of steps and flushes, one by one."""

import random

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import RECORDS_PER_BEAT, HostFrame, RawBeat, RecordBeat, StepOpenRecord
from rtl.rings import CompletionWriter, RingMessages
from tests.support import made, quiet_while_idle, receiver, sender, simulate


def beats_of(records, rng):
    """Return beats of one to eight of ``records``, with random bits in unused places."""
    beats, left = [], list(records)
    while left:
        some, left = left[:rng.randint(1, RECORDS_PER_BEAT)], left
        left = left[len(some):]
        noise = rng.getrandbits(512) >> 64 * len(some) << 64 * len(some)
        beats.append({"data": sum(record << 64 * k for k, record in enumerate(some)) | noise,
                      "records": len(some), "source": 0, "step": 0, "last": rng.getrandbits(1)})
    return beats


def test_every_record_once():
    rng, dut, steps = random.Random(4), made(RingMessages), []
    opened = [{"samples": rng.getrandbits(32), "step": rng.getrandbits(16),
               "freed": rng.getrandbits(16)} for _ in range(60)]
    flushed = [{"slot": rng.getrandbits(16), "tag": rng.getrandbits(16)} for _ in range(60)]
    freed, flushes = [], []

    async def watch(ctx):
        taken = 0
        async for _, _, free, flush, takes in ctx.tick().sample(
                dut.freed, dut.flushed, dut.steps.valid & dut.steps.ready):
            taken += takes
            assert taken <= len(freed), "a step says what is returned before it comes"
            if free.valid:
                freed.append(free.index)
            if flush.valid:
                flushes.append({"slot": flush.slot, "tag": flush.tag})

    async def finish(ctx):
        await receiver(dut.steps, steps, 60, stall=0.4)(ctx)
        while len(flushes) < 60 or not ctx.get(dut.idle):
            await ctx.tick()

    simulate(dut, finish, sender(dut.opens, beats_of(
        [s["samples"] | s["step"] << 32 | s["freed"] << 48 for s in opened], rng), stall=0.3),
        sender(dut.flushes, beats_of(
            [f["slot"] | f["tag"] << 16 | rng.getrandbits(32) << 32 for f in flushed], rng),
            stall=0.3, seed=5),
        background=[watch, quiet_while_idle(
            dut.idle, [dut.opens.valid, dut.flushes.valid], [dut.steps.valid, dut.flushed.valid])])
    assert steps == opened and flushes == flushed
    assert freed == [step["freed"] for step in opened]


class Rings(wiring.Component):
    """The message block and a completion writer of two slots, as in the NIC."""

    opens: In(stream.Signature(RecordBeat))
    headers: Out(stream.Signature(HostFrame))
    payload: Out(stream.Signature(RawBeat))
    refused: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.messages = messages = RingMessages()
        m.submodules.writer = writer = CompletionWriter(2)
        wiring.connect(m, wiring.flipped(self.opens), messages.opens)
        wiring.connect(m, messages.steps, writer.opens)
        wiring.connect(m, writer.headers, wiring.flipped(self.headers))
        wiring.connect(m, writer.payload, wiring.flipped(self.payload))
        m.d.comb += [writer.freed.eq(messages.freed), writer.flushed.eq(messages.flushed),
                     self.refused.eq(writer.counters.refused)]
        return m


def test_a_step_that_returns_slots_may_use_them():
    """Complete two steps of a packet at once, in a ring of two slots."""
    dut, opened = Rings(), []

    async def host(ctx):
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        await ctx.tick().repeat(6)
        for pair in range(20):
            records = [StepOpenRecord.const({
                "samples": 0, "step": 2 * pair + k, "freed": 2 * pair}).as_value().value
                for k in range(2)]
            await sender(dut.opens, beats_of(records, random.Random(1)))(ctx)
            for _ in range(200):
                if len(opened) >= 2 * pair + 2:
                    break
                await ctx.tick()
            assert len(opened) == 2 * pair + 2, (pair, ctx.get(dut.refused))
        await ctx.tick().repeat(20)
        assert ctx.get(dut.refused) == 0

    async def count(ctx):
        async for _, _, moves, beat in ctx.tick().sample(
                dut.payload.valid & dut.payload.ready, dut.payload.payload.data):
            if moves:
                opened.append(beat)

    simulate(dut, host, background=[count])
    assert len(opened) == 40
