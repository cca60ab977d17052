"""Drive an EmbeddingCache: lookups, fetches answered late and out of order, a scoreboard."""

import random
from collections import Counter
from dataclasses import dataclass, field

from host.lru import LruSets
from rtl.cache import EmbeddingCache
from rtl.hash_columns import key_hash
from rtl.hashing import hash_bits
from tests.support import receiver, sender, simulate

KEY_BITS = 48


def hash_of(key: int) -> int:
    """Return the 32-bit hash of a 48-bit key as the RTL has it."""
    return key_hash(key >> 36, key & (1 << 36) - 1)


def beat_of(key: int, beat: int) -> int:
    """Return beat ``beat`` of the vector of ``key``: every bit of the beat depends on both."""
    return random.Random(key * 1000 + beat).getrandbits(512)


def make(**sizes) -> EmbeddingCache:
    """Return a cache of 48-bit keys with 16 bits of meta, small unless told otherwise."""
    sizes = {"rows": 32, "ways": 4, "in_flight": 16, "waiters": 32, "vector_beats": 1} | sizes
    return EmbeddingCache(KEY_BITS, 16, hash_key=hash_bits, **sizes)


@dataclass
class Run:
    """What a run showed."""

    taken: list = field(default_factory=list)
    tap: list = field(default_factory=list)
    evicted: list = field(default_factory=list)
    fetched: list = field(default_factory=list)
    counters: dict = field(default_factory=dict)
    accepted: list = field(default_factory=list)
    cycles: int = 0
    most_outstanding: int = 0


def run(dut: EmbeddingCache, keys: list[int], *, sets: int | None = None, enable: int = 1,
        beats: int = 1, latency: tuple[int, int] = (1, 40), stalls=(0.0, 0.0, 0.0, 0.0),
        seed: int = 0, limit: int = 60_000, check: bool = True) -> Run:
    """Look ``keys`` up and check every answer; meta is the number of the lookup.

    Fetches come back whole, each after a random number of cycles of ``latency``, at one beat per
    cycle. ``stalls``: of lookups, vectors, misses and fills.
    """
    result = Run()
    due: list[tuple[int, int, int]] = []
    now = [0]
    done = [False]

    async def clock(ctx):
        while True:
            await ctx.tick()
            now[0] += 1

    async def answer_misses(ctx):
        rng = random.Random(seed + 5)
        while True:
            while rng.random() < stalls[2]:
                await ctx.tick()
            ctx.set(dut.misses.ready, 1)
            payload, = await ctx.tick().sample(dut.misses.payload).until(dut.misses.valid)
            ctx.set(dut.misses.ready, 0)
            id_ = payload.id
            assert id_ not in [entry[1] for entry in due], "an id is given to one fetch at a time"
            due.append((now[0] + rng.randint(*latency), id_, payload.key))
            result.fetched.append(payload.key)
            result.most_outstanding = max(result.most_outstanding, len(due))

    async def fill(ctx):
        rng = random.Random(seed + 6)
        while True:
            ready = [entry for entry in due if entry[0] <= now[0]]
            if not ready or rng.random() < stalls[3]:
                await ctx.tick()
                continue
            entry = min(ready)
            due.remove(entry)
            _, id_, key = entry
            for beat in range(beats):
                while rng.random() < stalls[3]:
                    await ctx.tick()
                ctx.set(dut.fills.payload, {
                    "id": id_, "data": beat_of(key, beat), "last": int(beat == beats - 1)})
                ctx.set(dut.fills.valid, 1)
                await ctx.tick()
                assert ctx.get(dut.fills.ready), "fills are always accepted"
                ctx.set(dut.fills.valid, 0)

    async def watch(ctx):
        async for _, _, tap, evicted, valid, ready in ctx.tick().sample(
                dut.tap, dut.evicted, dut.lookups.valid, dut.lookups.ready):
            if tap.valid:
                result.tap.append((tap.key, tap.hit, tap.pending, tap.conflict))
            if evicted.valid:
                result.evicted.append((len(result.tap), evicted.key))
            if valid and ready:
                result.accepted.append(now[0])

    async def finish(ctx):
        while len(result.taken) < len(keys) * beats:
            await ctx.tick()
        for _ in range(limit):
            if ctx.get(dut.idle) and not due:
                break
            await ctx.tick()
        assert ctx.get(dut.idle)
        result.counters = {name: ctx.get(dut.counters[name])
                           for name in dut.counters.shape().members}
        done[0] = True

    async def configure(ctx):
        ctx.set(dut.sets, sets or dut._rows // dut._ways)
        ctx.set(dut.enable, enable)
        ctx.set(dut.vector_beats, beats)

    items = [{"key": key, "meta": n & 0xFFFF} for n, key in enumerate(keys)]
    result.cycles = simulate(
        dut, configure, sender(dut.lookups, items, stall=stalls[0], seed=seed + 1),
        receiver(dut.vectors, result.taken, len(items) * beats, stall=stalls[1], seed=seed + 2),
        finish, background=[clock, answer_misses, fill, watch], limit=limit)
    if check:
        check_answers(result, keys, beats)
        check_counters(result, keys, beats, enable)
    return result


def check_answers(result: Run, keys: list[int], beats: int) -> None:
    """Check that every lookup was answered once, with the vector of its key."""
    seen = Counter()
    for start in range(0, len(result.taken), beats):
        vector = result.taken[start:start + beats]
        meta = vector[0]["meta"]
        seen[meta] += 1
        for beat, item in enumerate(vector):
            assert item["meta"] == meta, "the beats of a vector come one after another"
            assert item["last"] == (beat == beats - 1)
            assert item["data"] == beat_of(keys[meta], beat), f"lookup {meta}, beat {beat}"
    assert seen == Counter(range(len(keys)))


def check_counters(result: Run, keys: list[int], beats: int, enable: int) -> None:
    """Check the counters against what was seen at the ports."""
    c = result.counters
    assert [entry[0] for entry in result.tap] == keys
    assert c["accesses"] == len(keys) == c["hits"] + c["misses"]
    assert c["hits"] == sum(entry[1] for entry in result.tap)
    assert c["hits_pending"] == sum(entry[2] for entry in result.tap)
    assert c["conflict_misses"] == sum(entry[3] for entry in result.tap)
    assert c["misses"] == len(result.fetched)
    assert c["evictions"] == len(result.evicted)
    assert c["beats_out"] == len(keys) * beats
    assert c["beats_in"] == len(result.fetched) * beats
    assert c["bad_fills"] == 0
    if not enable:
        assert c["hits"] == c["conflict_misses"] == c["evictions"] == 0


def check_lru(result: Run, sets: int, ways: int) -> None:
    """Check hits and evictions, access by access, against a textbook LRU, conflicts set apart.

    A conflict miss leaves a set as it is, so the model leaves it out; where there is none, this is
    plain equality.
    """
    model = LruSets(sets, ways)
    evicted = dict(result.evicted)
    for number, (key, hit, _, conflict) in enumerate(result.tap, 1):
        if conflict:
            assert not hit and key not in model
            assert number not in evicted
            continue
        index = (hash_of(key) >> 8) * sets >> 24
        assert model.access(index, key) == bool(hit), f"access {number}"
        assert evicted.get(number) == model.evicted, f"access {number}"
