"""BagLanding: a vector lands only for the bag that waits for it, once, and never waits itself."""

import random

import pytest
from amaranth.hdl import Cat

from rtl.bags.landing import BagLanding
from rtl.config import preset
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, simulate

SETTLED = 2
"""Cycles from a request to the earliest vector that may answer it."""
STALLS = 7
"""Cycles without a beat in a vector of the cache that has begun, at most."""
OWN = 1 << 511
"""Bit of a beat that came from the cache."""


def build(ids=16, beats=1):
    config = preset("tiny").with_fields(owner_bags=ids, max_dimension=16 * beats)
    return made(BagLanding, config)


class World:
    """Bags that wait for vectors, the vectors that arrive, and the beats that leave.

    owed: tag to (node, place, first cycle in which a vector may answer, its beats).
    sizes: beats that the vector of a bag may have.
    taken: vectors that must leave, as (place, beats); used: ids of bags that wait.
    """

    def __init__(self, dut, ids: int, beats: int, seed: int, stall: float, sizes=()):
        self.sizes = sizes or range(1, beats + 1)
        self.dut, self.ids, self.beats, self.stall = dut, ids, beats, stall
        self.rng = random.Random(seed)
        self.owed: dict[int, tuple[int, int, int, int]] = {}
        self.gone: list[tuple[int, int]] = []
        self.taken: list[tuple[int, list[int]]] = []
        self.cached: list[tuple[int, list[int]]] = []
        self.bags_out: list[tuple[int, list[int]]] = []
        self.cached_out: list[tuple[int, list[int]]] = []
        self.seen: dict[str, int] = {}
        self.good = self.bad = self.landed = self.cycle = 0
        self.ends = False

    async def clock(self, ctx):
        dut, begun = self.dut, []
        ctx.set(dut.o.ready, 1)
        async for _, _, valid, tag, beat, last, landed in ctx.tick().sample(
                dut.o.valid, dut.o.payload.tag, Cat(dut.o.payload.data, dut.o.payload.lost),
                dut.o.payload.last, dut.landed):
            self.cycle += 1
            self.landed += landed
            if not valid:
                continue
            begun.append((tag, beat))
            if last:
                assert len({(place, each & OWN) for place, each in begun}) == 1
                out = self.cached_out if beat & OWN else self.bags_out
                out.append((tag, [each for _, each in begun]))
                begun = []

    async def ask(self, ctx):
        dut, rng = self.dut, self.rng
        while not self.ends:
            if rng.random() >= 0.5 or not ctx.get(dut.id.valid):
                await ctx.tick()
                continue
            tag, node, place = ctx.get(dut.id.payload), rng.randrange(8), rng.randrange(64)
            assert tag % self.ids not in {each % self.ids for each in self.owed}
            ctx.set(dut.id.ready, 1)
            size = rng.choice(self.sizes)
            ctx.set(dut.asked, {"valid": 1, "node": node, "place": place, "final_beat": size - 1})
            self.owed[tag] = node, place, self.cycle + SETTLED, size
            await ctx.tick()
            ctx.set(dut.id.ready, 0)
            ctx.set(dut.asked, {"valid": 0, "node": rng.randrange(8), "place": place ^ 1,
                                "final_beat": rng.randrange(16)})

    async def send(self, ctx, tag, node, number, lost=0):
        """Send a vector of ``number`` beats, and predict what becomes of it."""
        dut, rng = self.dut, self.rng
        data = [rng.getrandbits(511) for _ in range(number)]
        while rng.random() < self.stall:
            await ctx.tick()
        owner, place, settled, size = self.owed.get(tag, (None, 0, 0, 0))
        if owner == node and self.cycle >= settled:
            self.taken.append((place, [beat | lost << 512 for beat in data]))
            if number == size:
                del self.owed[tag]
                self.gone.append((tag, node))
                self.good += 1
        self.bad += (owner != node or number != size) and not lost
        for n, beat in enumerate(data):
            while n and rng.random() < self.stall:
                await ctx.tick()
            # The tag of a vector is that of its first beat.
            ctx.set(dut.vectors.payload, {
                "tag": rng.getrandbits(16) if n else tag, "data": beat, "source": node,
                "last": int(n == number - 1), "lost": lost})
            ctx.set(dut.vectors.valid, 1)
            assert ctx.get(dut.vectors.ready), "the network never waits"
            await ctx.tick()
            ctx.set(dut.vectors.valid, 0)

    def ready(self):
        return [tag for tag, (_, _, settled, _) in self.owed.items() if self.cycle >= settled]

    async def vectors(self, ctx, count):
        """Send vectors of all kinds, some of them back to back."""
        rng, dut = self.rng, self.dut
        await ctx.tick().until(dut.vectors.ready)
        for _ in range(count):
            kind = rng.choice(("right", "right", "right", "twice", "again", "node", "length",
                               "never", "lost"))
            if not (tags := self.ready()) or (kind == "again" and not self.gone):
                await ctx.tick()
                continue
            tag = rng.choice(tags)
            node, _, _, number = self.owed[tag]
            if kind == "again":
                tag, node = rng.choice(self.gone[-40:])
            elif kind == "node":
                node ^= 1 << rng.randrange(8)
            elif kind == "length":
                number = rng.choice([n for n in range(1, self.beats + 3) if n != number])
            elif kind == "never":
                tag ^= 1 << rng.randrange(16)
                if tag in self.owed:
                    continue
            self.seen[kind] = self.seen.get(kind, 0) + 1
            # Zeros in place of a vector that came are dropped, but not counted.
            lost = kind == "lost" or (kind == "again" and rng.random() < 0.5)
            await self.send(ctx, tag, node, number, int(lost))
            if kind == "twice":
                # The second vector comes 0 to 4 cycles later, when its id may be free again.
                await ctx.tick().repeat(gap) if (gap := rng.randrange(5)) else None
                await self.send(ctx, tag, node, rng.choice((1, number)))
        self.ends = True

    async def cache(self, ctx):
        """Offer vectors of the cache; one that has begun waits little."""
        dut, rng = self.dut, self.rng
        while not self.ends:
            while rng.random() < self.stall:
                await ctx.tick()
            data, tag = [rng.getrandbits(511) | OWN for _ in range(self.beats)], rng.getrandbits(16)
            self.cached.append((tag, data))
            left = STALLS
            for n, beat in enumerate(data):
                while n and left and rng.random() < 0.4:
                    left -= 1
                    await ctx.tick()
                ctx.set(dut.cached.payload, {
                    "tag": tag, "data": beat, "last": int(n == self.beats - 1), "lost": 0})
                ctx.set(dut.cached.valid, 1)
                await ctx.tick().until(dut.cached.ready)
                ctx.set(dut.cached.valid, 0)
        await ctx.tick().repeat(4)

    def check(self, counters):
        assert self.bags_out == self.taken and self.cached_out == self.cached
        assert counters == {"vectors": self.good, "bad_vectors": self.bad}
        assert self.landed == self.good


def run(world: World, count: int) -> None:
    dut, ends = world.dut, {}

    async def end(ctx):
        await world.vectors(ctx, count)
        await ctx.tick().repeat(40)
        while not ctx.get(dut.idle):
            await ctx.tick()
        ends.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut, 1), end, world.ask, world.cache, background=[world.clock])
    world.check(ends)


@pytest.mark.few(3)
@pytest.mark.parametrize("ids, beats, stall", [
    (16, 1, 0.0), (16, 4, 0.3), (128, 1, 0.3), (16, 16, 0.0), (32, 2, 0.0), (16, 3, 0.6)])
def test_only_what_is_owed_lands_and_once(ids, beats, stall):
    world = World(build(ids, beats), ids, beats, beats, stall)
    run(world, 1200 // (beats + 1))
    assert len(world.seen) == 7 and min(world.seen.values()) > 3, world.seen
    assert len(world.cached) > 8


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("beats", [1, 16])
def test_bags_never_wait_for_the_cache(beats):
    """Vectors of bags come without a gap while vectors of the cache stall as long as they may.

    The queue of bags would lose beats if it were full.
    """
    ids = 128
    world = World(build(ids, beats), ids, beats, 5, 0.0, (beats,))
    dut, rng = world.dut, world.rng

    async def vectors(ctx, count):
        await ctx.tick().until(dut.vectors.ready)
        while len(world.owed) < ids:
            await ctx.tick()
        for _ in range(count):
            # Long enough for a vector of the cache to begin.
            await ctx.tick().repeat(rng.randrange(1, 24))
            for tag in rng.sample(world.ready(), 3):
                await world.send(ctx, tag, world.owed[tag][0], beats)
        world.ends = True

    world.vectors = vectors
    run(world, 200 // beats + 10)
    assert world.bad == 0


def test_latency_and_rate():
    ids, beats = 16, 2
    dut, came, free = build(ids, beats), [], []
    beat = {"tag": 5, "data": 9 | OWN, "last": 1}

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.id.valid)
        tags = []
        for n in range(ids):  # an id a cycle
            assert ctx.get(dut.id.valid)
            tags.append(ctx.get(dut.id.payload))
            ctx.set(dut.id.ready, 1)
            ctx.set(dut.asked, {"valid": 1, "node": 3, "place": n, "final_beat": beats - 1})
            await ctx.tick()
        ctx.set(dut.id.ready, 0)
        ctx.set(dut.asked.valid, 0)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle) and not ctx.get(dut.id.valid)
        for cycle in range(2 * ids + 12):  # a beat a cycle
            if cycle < 2 * ids:
                ctx.set(dut.vectors.payload, {"tag": tags[cycle // 2], "data": cycle, "source": 3,
                                              "last": cycle % 2})
            ctx.set(dut.vectors.valid, cycle < 2 * ids)
            if ctx.get(dut.o.valid):
                came.append((cycle, ctx.get(dut.o.payload.tag), ctx.get(dut.o.payload.data)))
            if ctx.get(dut.id.valid):
                free.append(cycle)
            await ctx.tick()
        assert ctx.get(dut.idle)
        ctx.set(dut.cached.payload, beat)
        ctx.set(dut.cached.valid, 1)
        await ctx.tick().repeat(BagLanding.LATENCY["beat of the cache", "the same beat"])
        assert ctx.get(dut.o.valid) and ctx.get(dut.o.payload.data) == 9 | OWN
        assert ctx.get(dut.o.payload.tag) == 5

    simulate(powered_up(dut, 2), bench)
    latency = BagLanding.LATENCY["beat of a bag's vector", "the same beat"]
    assert came == [(latency + n, n // 2, n) for n in range(2 * ids)]
    assert free[0] == 1 + BagLanding.LATENCY["last beat of a bag's vector", "its id, free"]


def test_an_id_gets_another_lap_each_time():
    """A late duplicate of the last vector of an id is no answer to its next bag."""
    dut, tags = build(16), []

    async def vector(ctx, tag):
        ctx.set(dut.vectors.payload, {"tag": tag, "data": 1, "source": 2, "last": 1})
        ctx.set(dut.vectors.valid, 1)
        await ctx.tick()
        ctx.set(dut.vectors.valid, 0)
        await ctx.tick().repeat(12)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.id.valid)
        for n in range(16 * 3):
            tags.append(ctx.get(dut.id.payload))
            ctx.set(dut.id.ready, 1)
            ctx.set(dut.asked, {"valid": 1, "node": 2, "place": 1})
            await ctx.tick()
            ctx.set(dut.id.ready, 0)
            ctx.set(dut.asked.valid, 0)
            await ctx.tick().repeat(3)
            for tag in (tags[n - 16], tags[n]) if n >= 16 else (tags[n],):
                await vector(ctx, tag)
            assert ctx.get(dut.counters.vectors) == n + 1
            assert ctx.get(dut.counters.bad_vectors) == max(0, n - 15)

    simulate(powered_up(dut, 3), bench)
    assert len(set(tags)) == 48 and len({tag % 16 for tag in tags}) == 16


def test_a_vector_that_began_before_its_request_is_dropped():
    """A peer may guess the next tag; a part of its vector is no vector."""
    dut = build(16, 4)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.id.valid)
        tag = ctx.get(dut.id.payload)
        for vector in range(2):
            for beat in range(4):
                asks = vector == 0 and beat == 0
                ctx.set(dut.id.ready, asks)
                ctx.set(dut.asked, {"valid": asks, "node": 2, "place": 9, "final_beat": 3})
                ctx.set(dut.vectors.payload, {
                    "tag": tag, "data": beat, "source": 2, "last": int(beat == 3)})
                ctx.set(dut.vectors.valid, 1)
                await ctx.tick()
        ctx.set(dut.vectors.valid, 0)
        for beat in range(4):
            assert await ctx.tick().sample(dut.o.payload.tag, dut.o.payload.data).until(
                dut.o.valid) == (9, beat)
        await ctx.tick().repeat(8)
        assert not ctx.get(dut.o.valid)
        assert (ctx.get(dut.counters.vectors), ctx.get(dut.counters.bad_vectors)) == (1, 1)

    simulate(powered_up(dut, 4), bench)


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        BagLanding("tiny")
    with pytest.raises(ValueError, match="owner_bags must be at least 16, not 0"):
        BagLanding(preset("tiny"))
