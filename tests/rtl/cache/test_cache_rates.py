"""EmbeddingCache alone: cycle counts, and hits while misses are outstanding."""

import random

import pytest

from rtl.cache import EmbeddingCache
from tests.rtl.cache.driver import beat_of, make, run
from tests.rtl.power_up import powered_up
from tests.support import simulate

KEYS = {
    "one key": lambda rng, n: [42] * n,
    "one set": lambda rng, n: [rng.getrandbits(48) for _ in range(n)],
    "one set, few keys": lambda rng, n: [rng.randrange(12) for _ in range(n)],
    "many sets": lambda rng, n: [min(int(rng.paretovariate(0.5)), 1 << 40) for _ in range(n)],
}


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.slow if kind == "one set" else ()) for kind in KEYS])
def test_a_lookup_a_cycle(kind):
    """Fills after 690 cycles at one vector per cycle, caches cold."""
    count = 1500
    keys = KEYS[kind](random.Random(1), count)
    dut = make(rows=256, ways=8, in_flight=1024, waiters=2048)
    result = run(dut, keys, sets=1 if "one" in kind else None, latency=(690, 690))
    # Until the first vector arrives, no lookup stalls. From then on, while lookups wait, a vector
    # leaves in every cycle.
    start = result.accepted[0]
    assert sum(cycle < start + 690 for cycle in result.accepted) >= 0.95 * 690
    assert result.given[0] - start <= 690 + 35
    first, end = result.given[0], max(result.accepted[-1], result.given[0] + 100)
    assert sum(cycle < end for cycle in result.given) >= 0.95 * (end - first)


@pytest.mark.thorough
def test_hits_pass_1023_outstanding_misses():
    dut = make(rows=4096, ways=8, in_flight=1024, waiters=1024)
    answers, asked = [], []

    async def take(ctx):
        ctx.set(dut.vectors.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(
                dut.vectors.valid, dut.vectors.payload):
            if valid:
                answers.append((payload.meta, payload.data))

    async def ask(ctx):
        ctx.set(dut.misses.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(
                dut.misses.valid, dut.misses.payload):
            if valid:
                asked.append((payload.id, payload.key))

    async def bench(ctx):
        ctx.set(dut.sets, 512)
        ctx.set(dut.enable, 1)
        ctx.set(dut.merge, 1)
        ctx.set(dut.vector_beats, 1)

        async def look_up(key, meta):
            ctx.set(dut.lookups.payload, {"key": key, "meta": meta})
            ctx.set(dut.lookups.valid, 1)
            await ctx.tick().until(dut.lookups.ready)
            ctx.set(dut.lookups.valid, 0)

        async def fill(id_, key):
            ctx.set(dut.fills.payload, {"id": id_, "data": beat_of(key, 0), "last": 1})
            ctx.set(dut.fills.valid, 1)
            await ctx.tick()
            ctx.set(dut.fills.valid, 0)

        await look_up(7, 0)
        await ctx.tick().repeat(15)
        await fill(*asked.pop())
        for n in range(1, 1024):
            await look_up((n * 0x9E3779B97F4A) & (1 << 48) - 1, n)
        await ctx.tick().repeat(30)
        assert len(asked) == 1023 and len({id_ for id_, _ in asked}) == 1023
        assert len(answers) == 1
        # A lookup enters with a miss id, which it returns in the seventh cycle if it hits.
        for n in range(2000, 2020):
            await look_up(7, n)
        await ctx.tick().repeat(40)
        assert answers[1:] == [(n, beat_of(7, 0)) for n in range(2000, 2020)]
        # One more miss takes the last id. The next miss waits, and blocks later lookups, until a
        # vector arrives.
        await look_up(1 << 46, 2999)
        await look_up(1 << 47, 3000)
        await ctx.tick().repeat(30)
        assert len(asked) == 1024 and not ctx.get(dut.idle)
        assert ctx.get(dut.counters.stall_in_flight) >= 20
        await fill(*asked[0])
        await ctx.tick().repeat(30)
        assert len(asked) == 1025 and asked[-1] == (asked[0][0], 1 << 47)
        assert answers[-1] == (1, beat_of(asked[0][1], 0))
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), bench, background=[take, ask], limit=6_000)


def test_latencies_are_as_documented():
    dut, times = make(), {}

    async def watch(ctx):
        now = 0
        async for _, _, looked, missed, filled, answered in ctx.tick().sample(
                dut.lookups.valid & dut.lookups.ready, dut.misses.valid, dut.fills.valid,
                dut.vectors.valid):
            now += 1
            for name, event in (("looked", looked), ("missed", missed), ("filled", filled),
                                ("answered", answered)):
                if event:
                    times.setdefault(name, []).append(now)

    async def bench(ctx):
        for port in (dut.enable, dut.merge, dut.vectors.ready, dut.misses.ready, dut.lookups.valid):
            ctx.set(port, 1)
        await ctx.tick().until(dut.lookups.ready)
        ctx.set(dut.lookups.valid, 0)
        await ctx.tick().repeat(20)
        ctx.set(dut.fills.valid, 1)
        ctx.set(dut.fills.payload, {"id": 0, "data": 0, "last": 1})
        await ctx.tick()
        ctx.set(dut.fills.valid, 0)
        await ctx.tick().repeat(20)
        ctx.set(dut.lookups.valid, 1)
        await ctx.tick()
        ctx.set(dut.lookups.valid, 0)
        await ctx.tick().repeat(20)

    simulate(powered_up(dut), bench, background=[watch])
    found = {("lookup that misses", "miss"): times["missed"][0] - times["looked"][0],
             ("last beat of a fill", "vector"): times["answered"][0] - times["filled"][0],
             ("lookup that hits", "vector"): times["answered"][1] - times["looked"][1]}
    assert found == EmbeddingCache.LATENCY
