"""Drive an EmbeddingCache: lookups, fetches answered late and out of order, and a scoreboard."""

import functools
import random
from collections import Counter
from dataclasses import dataclass, field

from amaranth.hdl import ResetInserter, Signal

from host.placement.sets import CacheSets, set_of
from rtl.cache import EmbeddingCache
from rtl.keys.hash_columns import key_hash
from rtl.keys.hashing import hash_bits
from tests.rtl.power_up import powered_up
from tests.support import KEPT, counts_of, receiver, sender, simulate

KEY_BITS = 48


def hash_of(key: int) -> int:
    """Return the 32-bit hash of a 48-bit key, as in the RTL."""
    return key_hash(key >> 36, key & (1 << 36) - 1)


def beat_of(key: int, beat: int) -> int:
    """Return beat ``beat`` of the vector of ``key``: every bit of the beat depends on both."""
    return random.Random(key * 1000 + beat).getrandbits(512)


@functools.lru_cache(maxsize=KEPT)
def make(**sizes) -> EmbeddingCache:
    """Return a cache of 48-bit keys with 16 bits of meta, small by default."""
    sizes = {"rows": 32, "ways": 4, "in_flight": 16, "waiters": 32, "vector_beats": 1} | sizes
    dut = EmbeddingCache(KEY_BITS, 16, hash_key=hash_bits, **sizes)
    dut.sizes = sizes
    return dut


@functools.lru_cache(maxsize=KEPT)
def resettable(dut: EmbeddingCache) -> tuple:
    """Return ``dut`` with its own reset, and that reset."""
    reset = Signal()
    return ResetInserter(reset)(dut), reset


@dataclass
class Run:
    """Results of a run."""

    taken: list = field(default_factory=list)
    tap: list = field(default_factory=list)
    evicted: list = field(default_factory=list)
    fetched: list = field(default_factory=list)
    counters: dict = field(default_factory=dict)
    accepted: list = field(default_factory=list)
    given: list = field(default_factory=list)
    bad: int = 0
    bad_beats: int = 0
    cycles: int = 0


def run(dut: EmbeddingCache, keys: list[int], *, sets: int | None = None, enable: int = 1,
        merge: int | None = None, beats: int = 1, latency: tuple[int, int] = (1, 40),
        stalls=(0.0, 0.0, 0.0, 0.0), bad_rate: float = 0.0, reset_at: int = 0,
        settings: dict[str, int] | None = None, seed: int = 0, limit: int = 60_000) -> Run:
    """Look ``keys`` up and check every answer; meta is the number of the lookup.

    Fetches return whole, each after a random number of cycles of ``latency``, at one beat per
    cycle.

    stalls: stalls of lookups, vectors, misses and fills.
    bad_rate: share of fills with invalid fills around them.
    reset_at: cycles of other lookups before a reset, after which the run begins.
    merge: by default ``enable``.
    settings: values of the configuration ports.
    """
    merge = enable if merge is None else merge
    result, due, now = Run(), [], [0]
    whole, reset = resettable(dut)
    started = [not reset_at]

    async def clock(ctx):
        while True:
            await ctx.tick()
            now[0] += 1

    def later(bench):
        async def wait(ctx):
            while not started[0]:
                await ctx.tick()
            await bench(ctx)
        return wait

    async def unsettle(ctx):
        every = sets or dut.sizes["rows"] // dut.sizes["ways"]
        for name, value in ({"sets": every, "enable": enable, "merge": merge,
                             "vector_beats": beats}
                            | (settings or {})).items():
            ctx.set(getattr(dut, name), value)
        rng = random.Random(seed + 4)
        for port in (dut.vectors.ready, dut.misses.ready):
            ctx.set(port, int(bool(reset_at)))
        for _ in range(reset_at):
            ctx.set(dut.lookups.payload, {"key": rng.choice(keys), "meta": 0xBAD})
            ctx.set(dut.lookups.valid, 1)
            ctx.set(dut.fills.payload, {"id": rng.randrange(16), "data": 0, "last": 1})
            ctx.set(dut.fills.valid, rng.random() < 0.2)
            await ctx.tick()
        for port in (dut.lookups.valid, dut.fills.valid, dut.vectors.ready, dut.misses.ready):
            ctx.set(port, 0)
        if reset_at:
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
        started[0] = True

    async def take_misses(ctx):
        rng = random.Random(seed + 5)
        while True:
            while rng.random() < stalls[2]:
                await ctx.tick()
            ctx.set(dut.misses.ready, 1)
            payload, = await ctx.tick().sample(dut.misses.payload).until(dut.misses.valid)
            ctx.set(dut.misses.ready, 0)
            assert payload.id not in [entry[1] for entry in due], "an id has one fetch at a time"
            due.append((now[0] + rng.randint(*latency), payload.id, payload.key))
            result.fetched.append(payload.key)

    async def fill(ctx):
        rng = random.Random(seed + 6)

        async def offer(ids, vector):
            for number, (id_, beat) in enumerate(zip(ids, vector, strict=True), 1):
                while rng.random() < stalls[3]:
                    await ctx.tick()
                ctx.set(dut.fills.payload, {
                    "id": id_, "data": beat, "last": int(number == len(vector))})
                ctx.set(dut.fills.valid, 1)
                assert ctx.get(dut.fills.ready), "fills are always accepted"
                await ctx.tick()
                ctx.set(dut.fills.valid, 0)

        async def spoil(ids):
            result.bad += 1
            result.bad_beats += len(ids)
            await offer(ids, [rng.getrandbits(512) for _ in ids])

        while True:
            ready = [entry for entry in due if entry[0] <= now[0]]
            if not ready or rng.random() < stalls[3]:
                await ctx.tick()
                continue
            entry = min(ready)
            due.remove(entry)
            _, id_, key = entry
            bad = rng.random() < bad_rate
            if bad:  # too long, too short, an impossible id, another id halfway
                await spoil([id_] * (beats + rng.randint(1, 3)))
                await spoil([id_ | 0x8000] * beats)
                if beats > 1:
                    await spoil([id_] * rng.randrange(1, beats))
                    await spoil([id_] * (beats - 1) + [id_ ^ 1])
            await offer([id_] * beats, [beat_of(key, beat) for beat in range(beats)])
            if bad:  # a duplicate, when it is no longer outstanding
                await spoil([id_] * beats)

    async def watch(ctx):
        quiet = False
        async for (_, _, in_reset, tap, evicted, valid, ready, filling, idle, out, out_ready,
                   miss) in ctx.tick().sample(
                       reset, dut.tap, dut.evicted, dut.lookups.valid, dut.lookups.ready,
                       dut.fills.valid, dut.idle, dut.vectors.valid, dut.vectors.ready,
                       dut.misses.valid):
            if quiet:
                assert idle and not out and not miss, "nothing moves while idle"
            if idle:
                assert not tap.valid and not evicted.valid and not out and not miss
            quiet = idle and not valid and not filling and not in_reset
            if in_reset or not started[0]:
                continue
            if out and out_ready:
                result.given.append(now[0])
            if tap.valid:
                result.tap.append((tap.key, tap.hit, tap.pending, tap.conflict, tap.unmerged))
            if evicted.valid:
                result.evicted.append((len(result.tap), evicted.key))
            if valid and ready:
                result.accepted.append(now[0])

    async def finish(ctx):
        while len(result.taken) < len(keys) * beats or due or not ctx.get(dut.idle):
            await ctx.tick()
        for _ in range(20):  # a surplus vector would arrive in these cycles
            await ctx.tick()
            assert not ctx.get(dut.vectors.valid)
        result.counters = counts_of(ctx, dut.counters)

    items = [{"key": key, "meta": n & 0xFFFF} for n, key in enumerate(keys)]
    result.cycles = simulate(
        powered_up(whole, seed), unsettle,
        later(sender(dut.lookups, items, stall=stalls[0], seed=seed + 1)),
        later(receiver(dut.vectors, result.taken, len(items) * beats, stall=stalls[1],
                       seed=seed + 2)),
        later(finish), background=[clock, later(take_misses), later(fill), watch], limit=limit)
    check_answers(result, keys, beats, dut.sizes.get("store_bits", 512))
    check_counters(result, keys, beats, enable, merge)
    return result


def check_answers(result: Run, keys: list[int], beats: int, bits: int = 512) -> None:
    """Check that every lookup was answered once, with the vector of its key."""
    seen = Counter()
    for start in range(0, len(result.taken), beats):
        vector = result.taken[start:start + beats]
        meta = vector[0]["meta"]
        seen[meta] += 1
        for beat, item in enumerate(vector):
            assert item["meta"] == meta, "the beats of a vector come one after another"
            assert item["last"] == (beat == beats - 1)
            kept = beat_of(keys[meta], beat) & (1 << bits) - 1
            assert item["data"] == kept, f"lookup {meta}, beat {beat}"
    assert seen == Counter(range(len(keys)))


def check_counters(result: Run, keys: list[int], beats: int, enable: int,
                   merge: int) -> None:
    """Check the counters against the events at the ports."""
    c = result.counters
    assert [entry[0] for entry in result.tap] == keys
    assert c["accesses"] == len(keys) == c["hits"] + c["misses"]
    assert c["hits"] == sum(entry[1] for entry in result.tap)
    assert c["hits_pending"] == sum(entry[2] for entry in result.tap)
    assert c["conflict_misses"] == sum(entry[3] for entry in result.tap)
    assert c["unmerged"] == sum(entry[4] for entry in result.tap)
    assert not any(hit and unmerged for _, hit, _, _, unmerged in result.tap)
    assert c["misses"] == len(result.fetched)
    assert c["evictions"] == len(result.evicted)
    assert c["beats_out"] == len(keys) * beats
    assert c["beats_in"] == len(result.fetched) * beats + result.bad_beats
    assert c["bad_fills"] == result.bad
    if merge:
        assert c["unmerged"] == 0
    else:
        assert c["hits_pending"] == 0
    if not enable and not merge:
        assert c["hits"] == c["conflict_misses"] == c["evictions"] == 0


def check_decisions(result: Run, sets: int, ways: int, *, enable: int = 1,
                    policy: str = "lru") -> None:
    """Check hits and evictions, access by access, against a textbook cache with this policy.

    The model skips conflict misses, which leave a set unchanged; without them, the results are
    equal. An unmerged lookup finds its key, and so does, with ``enable`` 0, a lookup that fetches
    it again.
    """
    model = CacheSets(sets, ways, policy)
    evicted = dict(result.evicted)
    for number, (key, hit, _, conflict, unmerged) in enumerate(result.tap, 1):
        if conflict:
            assert not hit and key not in model
            assert number not in evicted
            continue
        present = model.access(set_of(hash_of(key), sets), key)
        if enable:
            assert present == bool(hit or unmerged), f"access {number}"
        else:
            assert present or not hit, f"access {number}"
        assert evicted.get(number) == model.evicted, f"access {number}"
