"""DenseRing: places and requests in sample order, vectors in any order, and unrequested vectors."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module

from rtl.config import preset
from rtl.formats import Opcode
from rtl.interaction import DenseRing
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate

PLACES = 8


def build(dimension=16):
    return made(DenseRing, preset("tiny").with_fields(
        max_dimension=dimension, net_payload_beats=5, dense_vectors=PLACES))


def samples_of(count, dimension, seed):
    """Return samples: number, step, and the beats of the dense vector, in runs of a step."""
    rng = random.Random(seed)
    bits = 32 * min(16, dimension)
    return [(rng.getrandbits(32), k // 11, [rng.getrandbits(bits) for _ in range(
        max(1, dimension // 16))]) for k in range(count)]


class Host:
    """Read the requests, and answer them in any order among unrequested vectors."""

    def __init__(self, dut, samples, *, stall, strangers, seed=1):
        self.dut, self.samples = dut, {number: beats for number, _, beats in samples}
        self.total, self.stall, self.strangers = len(samples), stall, strangers
        self.any_vector = samples[0][2]
        self.rng = random.Random(seed)
        self.headers: list[dict] = []
        self.asked: list[tuple[int, int]] = []
        self.open: list[tuple[int, int]] = []
        self.bad = 0

    async def take_headers(self, ctx):
        while len(self.asked) < self.total:
            before = len(self.headers)
            await receiver(self.dut.headers, self.headers, before + 1, stall=self.stall)(ctx)

    async def take_requests(self, ctx):
        at = 0
        while len(self.asked) < self.total:
            beats: list[dict] = []
            while not beats or not beats[-1]["last"]:
                await receiver(self.dut.payload, beats, len(beats) + 1, stall=self.stall,
                               seed=len(self.asked))(ctx)
            while len(self.headers) <= at:
                await ctx.tick()
            count, at = self.headers[at]["count"], at + 1
            assert len(beats) == -(-count // 8)
            records = [beats[k // 8]["data"] >> 64 * (k % 8) & (1 << 64) - 1 for k in range(count)]
            assert all(record >> 48 == 0 for record in records)
            found = [(record & 0xFFFFFFFF, record >> 32 & 0xFFFF) for record in records]
            self.asked += found
            self.open += found

    async def vector(self, ctx, tag, beats):
        for n, beat in enumerate(beats):
            ctx.set(self.dut.vectors.payload,
                    {"tag": tag, "data": beat, "last": int(n == len(beats) - 1)})
            ctx.set(self.dut.vectors.valid, 1)
            assert ctx.get(self.dut.vectors.ready)
            await ctx.tick()
            ctx.set(self.dut.vectors.valid, 0)

    async def answer(self, ctx):
        answered = 0
        while answered < self.total:
            if self.rng.random() < self.strangers:
                await self.vector(ctx, self.rng.choice([PLACES, 0x8000, 0xFFFF]), self.any_vector)
                self.bad += 1
            if not self.open or self.rng.random() < self.stall:
                await ctx.tick()
                continue
            number, landing = self.open.pop(self.rng.randrange(len(self.open)))
            if self.rng.random() < self.strangers:
                wrong = self.rng.choice([len(self.any_vector) + 1, len(self.any_vector) - 1 or 3])
                await self.vector(ctx, landing, [1] * wrong)
                self.bad += 1
            await self.vector(ctx, landing, self.samples[number])
            answered += 1


def run(dimension, count, *, stall=0.0, strangers=0.0, batch=3, timeout=6):
    dut, samples = build(max(dimension, 16)), samples_of(count, dimension, dimension)
    host = Host(dut, samples, stall=stall, strangers=strangers)
    taken: list[dict] = []
    expected = [{"data": beat, "vector_last": int(n == len(beats) - 1), "sample_last": 0,
                 "sample": number, "step": step, "lost": 0}
                for number, step, beats in samples for n, beat in enumerate(beats)]
    found: dict[str, int] = {}
    events = {"asked": 0, "landed": 0}

    async def clock(ctx):
        now = 0
        while True:
            for name in events:
                events[name] += ctx.get(getattr(dut, name))
            await ctx.tick()
            now += 1
            ctx.set(dut.time, now)

    async def feed(ctx):
        ctx.set(dut.vector_beats, max(1, dimension // 16))
        ctx.set(dut.batch, batch)
        ctx.set(dut.timeout, timeout)
        ctx.set(dut.credit, 0x77)
        await sender(dut.reserve, [{"sample": number, "step": step} for number, step, _ in samples],
                     stall=stall, seed=8)(ctx)

    async def finish(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall, seed=9)(ctx)
        await ctx.tick().repeat(12)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        found.update(counts_of(ctx, dut.counters))

    cycles = simulate(powered_up(dut), feed, finish, host.take_requests, host.answer,
                      background=[clock, host.take_headers], limit=20_000)
    assert taken == expected
    assert host.asked == [(number, k % PLACES) for k, (number, _, _) in enumerate(samples)]
    steps = [header["step"] for header in host.headers for _ in range(header["count"])]
    assert steps == [step for _, step, _ in samples]
    assert all(header["opcode"] == Opcode.DENSE_REQUESTS and header["credit"] == 0x77
               for header in host.headers)
    assert found["packets"] == len(host.headers) and found["bad_landings"] == host.bad
    assert found["reserved"] == found["vectors_in"] == count
    assert events == {"asked": count, "landed": count}
    return found, cycles


@pytest.mark.few(4)
@pytest.mark.parametrize("dimension, stall, strangers", [
    pytest.param(dimension, *way, marks=() if (k - n) % 3 < 2 else pytest.mark.slow)
    for n, dimension in enumerate((4, 8, 16, 64))
    for k, way in enumerate(((0.0, 0.0), (0.4, 0.0), (0.2, 0.4)))])
def test_vectors_in_sample_order(dimension, stall, strangers):
    found, _ = run(dimension, 60, stall=stall, strangers=strangers)
    assert (found["bad_landings"] > 0) == (strangers > 0)
    assert found["stall_full"] > 0


def test_a_full_ring_takes_no_sample_and_an_unread_place_is_not_free():
    dut = build()
    taken: list[dict] = []

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.batch, 8)
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        await ctx.tick().until(dut.idle)
        await sender(dut.reserve, [{"sample": k, "step": 0} for k in range(PLACES)])(ctx)
        ctx.set(dut.reserve.valid, 1)
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.reserve.ready) and ctx.get(dut.counters.reserved) == PLACES
        ctx.set(dut.reserve.valid, 0)
        for tag, data in ((1, 11), (1, 12), (0, 10), (0, 13)):
            ctx.set(dut.vectors.payload, {"tag": tag, "data": data, "last": 1})
            ctx.set(dut.vectors.valid, 1)
            await ctx.tick()
        ctx.set(dut.vectors.valid, 0)
        await receiver(dut.o, taken, 2)(ctx)
        await ctx.tick().repeat(4)
        # Each place took one vector, the first.
        assert ctx.get(dut.counters.bad_landings) == 2 and ctx.get(dut.reserve.ready)

    simulate(powered_up(dut), bench)
    assert [beat["data"] for beat in taken] == [10, 11]


def test_a_vector_a_cycle():
    """Vectors come as they are asked for; the ring is as deep as the way there and back is long."""
    dut = made(DenseRing, preset("tiny").with_fields(max_dimension=16, dense_vectors=64))
    taken: list[dict] = []
    count = 300

    async def answer(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.batch, 8)
        ctx.set(dut.timeout, 64)
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        landing, waiting = 0, 0
        while landing < count:
            *_, asked = await ctx.tick().sample(dut.asked)
            waiting += asked
            ctx.set(dut.vectors.valid, int(waiting > 0))
            if waiting:
                ctx.set(dut.vectors.payload, {"tag": landing % 64, "data": landing, "last": 1})
                landing, waiting = landing + 1, waiting - 1
        await ctx.tick()
        ctx.set(dut.vectors.valid, 0)

    cycles = simulate(
        powered_up(dut), answer, receiver(dut.o, taken, count),
        sender(dut.reserve, [{"sample": k, "step": 0} for k in range(count)]))
    assert [beat["data"] for beat in taken] == list(range(count))
    # 64 cycles to sweep the filled bits first.
    assert count / (cycles - 64 - 16) >= 0.97


def test_reset_forgets_places():
    dut = build()
    taken: list[dict] = []

    m = Module()
    m.domains.sync = reset = ClockDomain("sync")
    m.submodules.dut = dut

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.batch, 1)
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        for data in (1, 2):
            await ctx.tick().until(dut.idle)
            await sender(dut.reserve, [{"sample": 9, "step": 0}])(ctx)
            await ctx.tick().repeat(4)
            ctx.set(dut.vectors.payload, {"tag": 0, "data": data, "last": 1})
            ctx.set(dut.vectors.valid, 1)
            await ctx.tick()
            ctx.set(dut.vectors.valid, 0)
            await ctx.tick().repeat(8)
            if data == 1:
                ctx.set(reset.rst, 1)
                await ctx.tick()
                ctx.set(reset.rst, 0)
                assert not ctx.get(dut.o.valid) and ctx.get(dut.counters.reserved) == 0
        await receiver(dut.o, taken, 1)(ctx)

    simulate(powered_up(m), bench)
    assert [beat["data"] for beat in taken] == [2]


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 7"):
        DenseRing(7)
