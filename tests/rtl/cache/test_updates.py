"""LocalCache in training: rows are looked up while it is frozen, written in place, and read again.
"""

import random

import pytest
from amaranth.hdl import Cat

from host.placement.sets import CacheSets, set_of
from rtl.cache import LocalCache
from rtl.config import preset
from tests.rtl.cache.driver import check_decisions, hash_of, make, run
from tests.rtl.cache.test_cache import STALLS, skewed
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate

ROW_BITS, ROUNDS = 36, 5
HIT = LocalCache.LATENCY["lookup that hits", "vector"]


def local_cache(dimension: int = 16, **fields) -> LocalCache:
    dut = made(LocalCache, preset("tiny").with_fields(
        training=True, max_dimension=dimension, local_cache_rows=16, misses_in_flight=8,
        dedupe_in_flight=16, **fields))
    dut.beats = dimension // 16
    return dut


def named(key: int) -> dict[str, int]:
    return {"row": key & (1 << ROW_BITS) - 1, "table": key >> ROW_BITS}


def number(key) -> int:
    return key.row | key.table << ROW_BITS


class Memory:
    """GPU memory behind a cache: rows by key, read on request."""

    def __init__(self, dut: LocalCache, seed: int, latency: tuple[int, int]):
        self.dut, self.rows, self.due, self.latency = dut, {}, [], latency
        self.rng, self.now = random.Random(seed), 0

    def row(self, key: int) -> list[int]:
        return self.rows.setdefault(
            key, [self.rng.getrandbits(512) for _ in range(self.dut.beats)])

    async def asked(self, ctx):
        dut = self.dut
        while True:
            ctx.set(dut.misses.ready, self.rng.random() < 0.7)
            _, _, valid, ready, miss = await ctx.tick().sample(
                dut.misses.valid, dut.misses.ready, dut.misses.payload)
            self.now += 1
            if valid and ready:
                self.due.append((self.now + self.rng.randint(*self.latency), miss.id,
                                 list(self.row(number(miss.key)))))

    async def answers(self, ctx):
        fills = self.dut.fills
        while True:
            late = [entry for entry in self.due if entry[0] <= self.now]
            if not late:
                await ctx.tick()
                continue
            entry = self.rng.choice(late)
            self.due.remove(entry)
            for k, beat in enumerate(entry[2]):
                ctx.set(fills.payload, {"id": entry[1], "data": beat,
                                        "last": int(k == len(entry[2]) - 1)})
                ctx.set(fills.valid, 1)
                await ctx.tick()
            ctx.set(fills.valid, 0)


async def settings(ctx, dut, enable: int = 1):
    ctx.set(dut.enable, enable)
    ctx.set(dut.sets, 4)
    ctx.set(dut.vector_beats, dut.beats)
    while not ctx.get(dut.idle):
        await ctx.tick()


def vectors_of(taken: list, beats: int) -> list[tuple[int, list[int]]]:
    """Return meta and beats of each vector."""
    vectors = []
    for k in range(0, len(taken), beats):
        part = taken[k:k + beats]
        assert [item["last"] for item in part] == [0] * (beats - 1) + [1]
        assert len({item["meta"] for item in part}) == 1
        vectors.append((part[0]["meta"], [item["data"] for item in part]))
    return vectors


class Hands:
    """Testbenches that run beside the first one, on its signal."""

    def __init__(self, dut: LocalCache, stall: float):
        self.dut, self.stall = dut, stall
        self.waiting, self.busy = [], 0

    async def work(self, ctx):
        while True:
            if not self.waiting:
                await ctx.tick()
                continue
            self.busy += 1
            await self.waiting.pop(0)(ctx)
            self.busy -= 1

    async def rest(self, ctx):
        while self.waiting or self.busy:
            await ctx.tick()

    def ask(self, keys: list[int], port, answers, first: int, seed: int) -> list[dict]:
        """Look ``keys`` up; return the future list of beats, with meta counted from ``first``."""
        taken: list[dict] = []
        items = [{"key": named(key), "meta": first + k} for k, key in enumerate(keys)]
        self.waiting += [
            sender(port, items, stall=self.stall, seed=seed),
            receiver(answers, taken, len(items) * self.dut.beats, stall=self.stall, seed=seed)]
        return taken


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("dimension, stall, early, enable", [
    (32, 0.3, False, 1), (16, 0.3, True, 1), (32, 0.0, True, 1), (16, 0.3, True, 0)])
def test_what_is_written_is_found(dimension, stall, early, enable):
    """Rounds of lookups and updates; ``early``: updates come with the lookups, not after them.

    Such lookups may see old rows or new ones, but leave no old row behind.
    """
    dut, rng = local_cache(dimension), random.Random(dimension)
    memory, hands, beats = Memory(dut, 3, (1, 60)), Hands(dut, stall), dut.beats
    keys = [rng.getrandbits(48) for _ in range(24)]
    held, tap = [], []

    async def look_up(ctx, chosen, seed):
        taken = hands.ask(chosen, dut.lookups, dut.vectors, 0, seed)
        await hands.rest(ctx)
        for meta, row in vectors_of(taken, beats):
            assert row == memory.row(chosen[meta])

    async def update(ctx, chosen, seed):
        taken = hands.ask(chosen, dut.updates, dut.updated, 0xFF00, seed)
        while len(taken) < len(chosen) * beats:
            await ctx.tick()
        writes = []
        for k, (meta, row) in enumerate(vectors_of(taken, beats)):
            key, first = chosen[meta - 0xFF00], taken[k * beats]
            assert row == memory.row(key)
            memory.rows[key] = [value ^ (seed << 7 | 1) for value in row]
            held.append(first["held"])
            if first["held"]:
                writes += [{"slot": first["slot"], "beat": beat, "data": value}
                           for beat, value in enumerate(memory.rows[key])]
        await sender(dut.write, writes, stall=stall, seed=seed)(ctx)

    async def bench(ctx):
        await settings(ctx, dut, enable)
        for turn in range(ROUNDS):
            chosen = [rng.choice(keys) for _ in range(20)]
            if early:  # some of them are inside when the cache is frozen
                hands.ask(chosen, dut.lookups, dut.vectors, 0, turn)
                await ctx.tick().repeat(1 + rng.randrange(24))
            else:
                await look_up(ctx, chosen, turn)
            ctx.set(dut.frozen, 1)
            before = ctx.get(dut.counters.evictions)
            await ctx.tick()
            updated = rng.sample(keys, 16)
            await update(ctx, updated, turn + 1)
            await hands.rest(ctx)
            while not ctx.get(dut.idle) or memory.due:
                await ctx.tick()
            assert early or ctx.get(dut.counters.evictions) == before
            ctx.set(dut.frozen, 0)
            await ctx.tick()
            await look_up(ctx, updated, turn)
        counters = counts_of(ctx, dut.counters)
        assert counters["accesses"] == counters["hits"] + counters["misses"] == len(tap)
        assert counters["accesses"] + counters["frozen"] == ROUNDS * (20 + 16 + 16)
        assert early or counters["frozen"] == ROUNDS * 16

    async def watch(ctx):
        async for _, _, event in ctx.tick().sample(dut.tap):
            if event.valid:
                tap.append((number(event.key), event.hit, event.conflict))

    simulate(powered_up(dut), bench, limit=40_000,
             background=[memory.asked, memory.answers, *[hands.work] * 4, watch])
    assert 15 < sum(held) < len(held) - 15 if enable else not any(held)
    if enable and not early:  # hits are those of an LRU cache that has seen no update
        model = CacheSets(4, 4)
        for key, hit, conflict in tap:
            if not conflict:
                assert model.access(set_of(hash_of(key), 4), key) == bool(hit)


@pytest.mark.parametrize("stalls", STALLS[1:2])
def test_with_updates_lookups_are_answered_as_without(stalls):
    result = run(make(rows=24, updated=True, vector_beats=2), skewed(200, 60, seed=3), beats=2,
                 stalls=stalls)
    check_decisions(result, 6, 4)
    assert result.counters["frozen"] == 0


def test_an_update_a_cycle():
    """One a cycle, and a cycle more than from a lookup to its vector where turns change."""
    dut = local_cache()
    memory = Memory(dut, 5, (1, 1))
    keys, sent, came, ask = [named(k) for k in range(12)], [], [], [0]

    async def watch(ctx):
        now = 0
        async for _, _, offered, taken, out in ctx.tick().sample(
                dut.updates.valid, Cat(dut.updates.valid, dut.updates.ready).all(),
                dut.updated.valid):
            now += 1
            if offered and not ask[0]:
                ask[0] = now
            sent.extend([now] * taken)
            came.extend([now] * out)

    async def bench(ctx):
        await settings(ctx, dut)
        taken: list[dict] = []
        await sender(dut.lookups, [{"key": key, "meta": 0} for key in keys])(ctx)
        ctx.set(dut.vectors.ready, 1)
        ctx.set(dut.updated.ready, 1)
        await ctx.tick().repeat(60)
        assert ctx.get(dut.counters.misses) == len(keys) - ctx.get(dut.counters.hits)
        ctx.set(dut.frozen, 1)
        await ctx.tick()
        await sender(dut.updates, [{"key": key, "meta": 0} for key in keys * 4])(ctx)
        await ctx.tick().repeat(20)
        assert sent == list(range(sent[0], sent[0] + 48))
        assert came == [cycle + HIT for cycle in sent] and sent[0] == ask[0] + 1
        assert ctx.get(dut.counters.frozen) == 48
        assert ctx.get(dut.updates.ready)
        ctx.set(dut.frozen, 0)
        assert not ctx.get(dut.updates.ready)
        ctx.set(dut.frozen, 1)
        # A lookup that is taken one cycle later finds the written row.
        slots: list[dict] = []
        ctx.set(dut.updated.ready, 0)
        await sender(dut.updates, [{"key": keys[0], "meta": 1}])(ctx)
        await receiver(dut.updated, slots, 1)(ctx)
        assert slots[0]["held"]
        ctx.set(dut.vectors.ready, 0)
        ctx.set(dut.write.payload, {"slot": slots[0]["slot"], "beat": 0, "data": 77})
        ctx.set(dut.lookups.payload, {"key": keys[0], "meta": 2})
        ctx.set(dut.write.valid, 1)
        assert ctx.get(dut.write.ready)
        await ctx.tick()
        ctx.set(dut.write.valid, 0)
        ctx.set(dut.lookups.valid, 1)
        while not ctx.get(dut.lookups.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(dut.lookups.valid, 0)
        await receiver(dut.vectors, taken, 1)(ctx)
        assert taken[0]["data"] == 77

    simulate(powered_up(dut), bench, background=[memory.asked, memory.answers, watch])


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_lookups_and_updates_take_turns(stall):
    """Neither waits for more than one of the other's, however many there are."""
    dut = local_cache()
    memory = Memory(dut, 6, (1, 5))
    taken: list[str] = []

    async def watch(ctx):
        ports = (dut.lookups.valid & dut.lookups.ready, dut.updates.valid & dut.updates.ready)
        async for _, _, looked, updated in ctx.tick().sample(*ports):
            taken.extend(["looked"] * looked + ["updated"] * updated)

    async def bench(ctx):
        await settings(ctx, dut)
        ctx.set(dut.frozen, 1)
        for port in (dut.lookups, dut.updates):
            ctx.set(port.payload, {"key": named(5), "meta": 0})
            ctx.set(port.valid, 1)
        rng = random.Random(1)
        for _ in range(200):
            for port in (dut.vectors, dut.updated):
                ctx.set(port.ready, rng.random() >= stall)
            await ctx.tick()

    simulate(powered_up(dut), bench, background=[memory.asked, memory.answers, watch])
    assert len(taken) > 30 and taken[4:] == (["looked", "updated"] * 100 if taken[4] == "looked"
                                             else ["updated", "looked"] * 100)[:len(taken) - 4]


def test_writes_wait_for_fills_and_none_is_lost():
    """Not settled: fills of three beats without a gap, and writes to slots that they fill not."""
    dut = local_cache(48)
    memory = Memory(dut, 7, (30, 30))
    first, others = [named(k) for k in range(3)], [named(k) for k in range(100, 108)]

    async def bench(ctx):
        await settings(ctx, dut)
        taken: list[dict] = []
        ctx.set(dut.vectors.ready, 1)
        await sender(dut.lookups, [{"key": key, "meta": 0} for key in first])(ctx)
        await ctx.tick().repeat(80)
        ctx.set(dut.frozen, 1)
        await ctx.tick()
        await sender(dut.updates, [{"key": key, "meta": k} for k, key in enumerate(first)])(ctx)
        await receiver(dut.updated, taken, 9)(ctx)
        slots = {item["meta"]: item["slot"] for item in taken if item["held"]}
        assert len(slots) == 3
        ctx.set(dut.frozen, 0)
        await ctx.tick()
        await sender(dut.lookups, [{"key": key, "meta": 0} for key in others])(ctx)
        while not ctx.get(dut.fills.valid):
            await ctx.tick()
        writes = [{"slot": slots[k], "beat": beat, "data": 10 * k + beat}
                  for k in range(3) for beat in range(3)]
        waits = 0
        for item in writes:
            ctx.set(dut.write.payload, item)
            ctx.set(dut.write.valid, 1)
            while not ctx.get(dut.write.ready):
                waits += 1
                await ctx.tick()
            await ctx.tick()
        ctx.set(dut.write.valid, 0)
        assert waits
        await ctx.tick().repeat(80)
        assert ctx.get(dut.idle)
        ctx.set(dut.vectors.ready, 0)
        found: list[dict] = []
        await sender(dut.lookups, [{"key": key, "meta": k} for k, key in enumerate(first)])(ctx)
        await receiver(dut.vectors, found, 9)(ctx)
        assert [item["data"] for item in found] == [item["data"] for item in writes]

    simulate(powered_up(dut), bench, background=[memory.asked, memory.answers])
