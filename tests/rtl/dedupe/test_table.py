"""DedupeTable and LocalCache with requests of several steps: each answered once, merged per
step."""

import random
from collections import Counter

import numpy as np
import pytest

from rtl.cache import LocalCache
from rtl.config import preset
from rtl.dedupe import DedupeTable
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, receiver, sender, simulate


def beat_of(table: int, row: int, beat: int) -> int:
    return random.Random(f"{table} {row} {beat}").getrandbits(512)


class Fetches:
    """Takes ``misses`` and answers each on ``fills`` after a random time."""

    def __init__(self, dut, *, latency: tuple[int, int], beats: int, seed: int = 0):
        self.dut, self.latency, self.beats, self.rng = dut, latency, beats, random.Random(seed)
        self.keys: list[tuple[int, int]] = []
        self._due: list[tuple[int, int, int, int]] = []
        self._now = 0

    async def take(self, ctx):
        ctx.set(self.dut.misses.ready, 1)
        async for _, _, valid, miss in ctx.tick().sample(
                self.dut.misses.valid, self.dut.misses.payload):
            self._now += 1
            if valid:
                self.keys.append((miss.key.table, miss.key.row))
                self._due.append((self._now + self.rng.randint(*self.latency), miss.id,
                                  *self.keys[-1]))

    async def give(self, ctx):
        fills = self.dut.fills
        while True:
            ready = [entry for entry in self._due if entry[0] <= self._now]
            if not ready:
                await ctx.tick()
                continue
            self._due.remove(min(ready))
            _, id_, table, row = min(ready)
            for beat in range(self.beats):
                ctx.set(fills.payload, {"id": id_, "data": beat_of(table, row, beat),
                                        "last": int(beat == self.beats - 1)})
                ctx.set(fills.valid, 1)
                await ctx.tick()
                ctx.set(fills.valid, 0)


def requests_of(steps, per_step: int, population: int, seed: int, overlap: int = 0) -> list[dict]:
    """Return requests step by step; requests of adjacent steps mix over the last ``overlap``."""
    rng = random.Random(seed)
    out, landing = [], 0
    for step in steps:
        for _ in range(per_step):
            row = min(int(rng.paretovariate(0.6)), population)
            out.append({"key": {"row": row * 77_777_777 % (1 << 36), "table": row % 26},
                        "landing": landing, "node": rng.randrange(8), "step": step})
            landing += 1
    for start in range(len(out) - overlap):
        if overlap and rng.random() < 0.3:
            other = start + rng.randrange(overlap)
            out[start], out[other] = out[other], out[start]
    return out


def play(config, items, *, floors=None, enable=1, beats=2, latency=(5, 60), stalls=(0.0, 0.0)):
    """Send ``items`` and return counters, answers, and the fetches.

    ``floors``: new floor, by index of the request at which it is set.
    """
    dut = made(DedupeTable, config)
    fetches = Fetches(dut, latency=latency, beats=beats)
    taken, counters = [], {}
    floors = floors or {0: items[0]["step"]}

    async def floor(ctx):
        ctx.set(dut.enable, enable)
        ctx.set(dut.vector_beats, beats)
        number = 0
        ctx.set(dut.step_floor, floors[0])
        async for _, _, valid, ready in ctx.tick().sample(dut.requests.valid, dut.requests.ready):
            number += valid and ready
            if number in floors:
                ctx.set(dut.step_floor, floors[number])

    async def finish(ctx):
        while len(taken) < len(items) * beats or not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.vectors.valid)
        counters.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut), sender(dut.requests, items, stall=stalls[0]),
             receiver(dut.vectors, taken, len(items) * beats, stall=stalls[1]), finish,
             background=[floor, fetches.take, fetches.give], limit=20_000)
    by_landing = {item["landing"]: item for item in items}
    seen = Counter()
    for start in range(0, len(taken), beats):
        tag = taken[start]["tag"]
        item = by_landing[tag["landing"]]
        seen[tag["landing"]] += 1
        assert (tag["node"], tag["step"]) == (item["node"], item["step"])
        for beat, got in enumerate(taken[start:start + beats]):
            assert got["tag"] == tag and got["last"] == (beat == beats - 1)
            assert got["data"] == beat_of(item["key"]["table"], item["key"]["row"], beat)
    assert seen == Counter(by_landing.keys())
    assert counters["requests"] == len(items) == counters["unique"] + counters["merged"]
    assert counters["unique"] == len(fetches.keys)
    assert counters["beats_out"] == len(items) * beats and counters["bad_fills"] == 0
    return counters, fetches


def unique_of(items) -> int:
    """Return the number of distinct keys, summed over steps, by numpy.unique."""
    steps = np.array([item["step"] for item in items])
    keys = np.array([item["key"]["row"] << 12 | item["key"]["table"] for item in items])
    return sum(len(np.unique(keys[steps == step])) for step in np.unique(steps))


@pytest.mark.few(1, "thorough")
@pytest.mark.few(2)
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.4), (0.0, 0.7)])
def test_each_key_is_fetched_once_a_step(stalls):
    config = preset("tiny").with_fields(dedupe_keys=512, dedupe_in_flight=64)
    items = requests_of((65534, 65535, 0, 1), 80, 60, seed=1, overlap=40)
    counters, _ = play(config, items, stalls=stalls)
    assert counters["retired_early"] == 0 and counters["merged"] > 100
    assert counters["unique"] == unique_of(items)


def test_full_table_retires_early_and_answers_all():
    items = requests_of((3, 4), 200, 400, seed=2)
    counters, _ = play(preset("tiny").with_fields(dedupe_keys=16), items, floors={0: 3, 230: 4})
    assert counters["retired_early"] > 20
    # Every refetched entry had been retired, but some retired entries were not requested again.
    assert unique_of(items) < counters["unique"] <= unique_of(items) + counters["retired_early"]


def test_entries_of_finished_steps_make_room():
    """Send twelve steps of 8 keys through 64 entries: every evicted entry is of an older step, also
    where step numbers wrap."""
    steps = [0xFFFC + n & 0xFFFF for n in range(12)]
    items = [{"key": {"row": row, "table": 0}, "landing": 8 * n + row, "node": 0, "step": step}
             for n, step in enumerate(steps) for row in range(8)]
    config = preset("tiny").with_fields(dedupe_keys=64, dedupe_ways=16)
    counters, _ = play(config, items, floors={8 * n: step for n, step in enumerate(steps)}, beats=1,
                       latency=(1, 2), stalls=(0.9, 0.0))
    assert counters["unique"] == 96 and counters["retired_early"] == 0


def test_steps_are_compared_in_all_their_bits():
    """Look up a key once per step, near the wrap: steps differ by one bit, or by multiples of
    1,024."""
    first = 0xFFFE
    steps = list(dict.fromkeys([first, *a_bit_apart(first),
                                *(first + 1024 * n & 0xFFFF for n in (1, 3, 63))]))
    items = [{"key": {"row": 5, "table": 1}, "landing": n, "node": 0, "step": step}
             for n, step in enumerate(2 * steps)]
    config = preset("tiny").with_fields(dedupe_keys=512, dedupe_ways=16, dedupe_in_flight=64)
    counters, _ = play(config, items, beats=1)
    assert counters["unique"] == counters["merged"] == len(steps)
    assert counters["retired_early"] == 0


def test_disabled_table_merges_nothing():
    items = requests_of((1,), 120, 10, seed=3)
    counters, fetches = play(preset("tiny"), items, enable=0)
    assert counters["merged"] == counters["retired_early"] == 0
    assert fetches.keys == [(item["key"]["table"], item["key"]["row"]) for item in items]


@pytest.mark.thorough
def test_requests_run_at_one_a_cycle():
    """Look up the same key, and distinct keys, before the first fill."""
    config = preset("tiny").with_fields(
        dedupe_keys=1024, dedupe_ways=8, dedupe_in_flight=1024, scatter_entries=2048)
    items = requests_of((7,), 600, 1, seed=4) + [
        {"key": {"row": n * 7919, "table": 3}, "landing": 600 + n, "node": 1, "step": 7}
        for n in range(600)]
    dut = made(DedupeTable, config)
    cycles = []

    async def watch(ctx):
        ctx.set(dut.misses.ready, 1)
        ctx.set(dut.enable, 1)
        async for _, _, valid, ready in ctx.tick().sample(dut.requests.valid, dut.requests.ready):
            if ready or cycles:
                cycles.append(valid and ready)

    simulate(powered_up(dut), sender(dut.requests, items), background=[watch])
    assert sum(cycles) == len(items) >= 0.95 * len(cycles)


@pytest.mark.parametrize("beats", [1, 4])
def test_local_cache_answers_lookups(beats):
    dut = made(LocalCache, preset("tiny"))
    fetches = Fetches(dut, latency=(3, 80), beats=beats)
    rng = random.Random(beats)
    keys = [(row % 26, row << 20) for row in (
        min(int(rng.paretovariate(0.6)), 150) for _ in range(250))]
    items = [{"key": {"table": table, "row": row}, "meta": n}
             for n, (table, row) in enumerate(keys)]
    taken, taps = [], []

    async def configure(ctx):
        ctx.set(dut.sets, 16)
        ctx.set(dut.enable, 1)
        ctx.set(dut.vector_beats, beats)

    async def watch(ctx):
        async for _, _, tap in ctx.tick().sample(dut.tap):
            if tap.valid:
                taps.append((tap.key.table, tap.key.row))

    simulate(powered_up(dut), configure, sender(dut.lookups, items, stall=0.2),
             receiver(dut.vectors, taken, len(items) * beats, stall=0.2),
             background=[fetches.take, fetches.give, watch])
    assert taps == keys
    assert sorted(item["meta"] for item in taken[::beats]) == list(range(len(keys)))
    for number, got in enumerate(taken):
        assert got["data"] == beat_of(*keys[got["meta"]], number % beats)


def test_configuration_is_checked():
    for kind in (DedupeTable, LocalCache):
        with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
            kind("tiny")


@pytest.mark.parametrize("latency", [(1, 5), (60, 90)])
def test_what_is_forgotten_is_fetched_again(latency):
    """Look up the same keys three times in the same step number, 65,536 steps apart."""
    items = requests_of((7,), 60, 20, seed=5)
    rounds = [[item | {"landing": 1000 * n + item["landing"]} for item in items] for n in range(3)]
    dut, taken = made(DedupeTable, preset("tiny")), []
    fetches = Fetches(dut, latency=latency, beats=1)

    async def script(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.step_floor, 7)
        await sender(dut.requests, items)(ctx)
        for n, again in enumerate(rounds[1:], 1):
            # Some fills are still in flight while the next requests wait.
            ctx.set(dut.forget, 1)
            ctx.set(dut.requests.payload, again[0])
            await ctx.tick()
            ctx.set(dut.forget, 0)
            ctx.set(dut.requests.valid, 1)
            while ctx.get(dut.forgetting):
                assert not ctx.get(dut.requests.ready) and not ctx.get(dut.idle)
                await ctx.tick()
            assert ctx.get(dut.counters.beats_out) == n * len(items)
            await sender(dut.requests, again)(ctx)

    simulate(powered_up(dut), script, receiver(dut.vectors, taken, 3 * len(items)),
             background=[fetches.take, fetches.give])
    wanted = {item["landing"]: item["key"] for again in rounds for item in again}
    assert {got["tag"]["landing"] for got in taken} == set(wanted)
    for got in taken:
        key = wanted[got["tag"]["landing"]]
        assert got["data"] == beat_of(key["table"], key["row"], 0)
    assert fetches.keys == 3 * fetches.keys[:unique_of(items)]
