"""RemoteCache: lookups leave with miss ids, vectors return to the reserved places."""

import random
from collections import Counter

import pytest

from rtl.cache import RemoteCache
from rtl.config import preset
from rtl.formats import LookupRecord
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, send_at_once, sender, simulate

CONFIG = preset("tiny")


def _record(key: tuple[int, int], landing: int) -> int:
    table, row = key
    return row | table << LookupRecord["table"].offset | landing << LookupRecord["landing"].offset


def _vector(key: tuple[int, int], beat: int) -> int:
    return random.Random(f"{key} {beat}").getrandbits(512)


# In each mode, vectors of one length without stalls and of the other length with stalls.
@pytest.mark.thorough
@pytest.mark.few(4)
@pytest.mark.parametrize("enable, merge, beats, stall", [
    pytest.param(*mode, beats, stall, marks=() if (beats == 1) == (stall > 0) else pytest.mark.slow)
    for mode in ((0, 0), (0, 1), (1, 0), (1, 1)) for beats in (1, 4) for stall in (0.0, 0.4)])
def test_each_place_gets_the_vector_of_its_key(enable, merge, beats, stall):
    """Whatever comes besides: vectors of nodes that were not asked, and those that come again."""
    dut = made(RemoteCache, CONFIG)
    rng = random.Random(beats)
    keys = [(rng.randrange(5), rng.randrange(30) ** 6) for _ in range(40)]
    owner_of = {key: rng.randrange(8) for key in keys}
    wanted = [rng.choice(keys) for _ in range(200)]
    items = [{"record": _record(key, place), "destination": owner_of[key], "step": place // 9}
             for place, key in enumerate(wanted)]
    asked: list[tuple[int, tuple[int, int]]] = []
    sent: Counter = Counter()
    taken: list[dict] = []
    over: list[tuple[int, tuple[int, int]]] = []
    refused = Counter()

    async def owners(ctx):
        chance = random.Random(7)
        taken_before = []
        while True:
            ctx.set(dut.misses.ready, chance.random() >= stall)
            _, _, valid, ready, miss = await ctx.tick().sample(
                dut.misses.valid, dut.misses.ready, dut.misses.payload)
            # An owner answers at the earliest two cycles after it took the miss.
            asked.extend(taken_before)
            taken_before.clear()
            if not (valid and ready):
                continue
            record = miss.record
            key = (record >> 36 & 0xFFF, record & (1 << 36) - 1)
            number = record >> 48
            assert miss.destination == owner_of[key], "a lookup goes to the owner of its key"
            assert key in wanted and any(
                item["step"] == miss.step and wanted[n] == key for n, item in enumerate(items))
            assert number not in [other for other, _ in asked], "an id is out once"
            sent[key] += 1
            taken_before.append((number, key))

    async def answer(ctx, number, key, source, wrong=0):
        for beat in range(beats):
            ctx.set(dut.fills.payload, {
                "tag": number, "data": _vector(key, beat) ^ wrong, "source": source,
                "last": int(beat == beats - 1)})
            ctx.set(dut.fills.valid, 1)
            assert ctx.get(dut.fills.ready)
            if beat == beats - 1 and not wrong:
                asked.remove((number, key))
            await ctx.tick()
            ctx.set(dut.fills.valid, 0)

    async def answers(ctx):
        chance = random.Random(8)
        while True:
            if not asked or chance.random() < 0.8:
                await ctx.tick()
                continue
            number, key = asked[chance.randrange(len(asked))]
            kind = chance.choice(("right", "right", "right", "right", "stranger", "again"))
            if kind == "right":
                await answer(ctx, number, key, owner_of[key])
                over.append((number, key))
            elif kind == "stranger":
                await answer(ctx, number, key, owner_of[key] ^ chance.randrange(1, 256), 1)
            elif over:
                number, key = chance.choice(over)
                if number in [other for other, _ in asked]:
                    continue
                await answer(ctx, number, key, owner_of[key], 1)
            else:
                continue
            refused[kind] += 1

    async def settings(ctx):
        for name, value in (("enable", enable), ("merge", merge), ("vector_beats", beats),
                            ("sets", CONFIG.remote_cache_sets)):
            ctx.set(getattr(dut, name), value)

    async def finish(ctx):
        while len(taken) < len(wanted) * beats or not ctx.get(dut.idle):
            await ctx.tick()
        count = dut.counters
        assert ctx.get(count.accesses) == len(wanted)
        assert ctx.get(count.misses) == sum(sent.values())
        assert ctx.get(count.hits) == len(wanted) - sum(sent.values())
        assert (ctx.get(count.hits) == 0) == (not enable and not merge)
        assert ctx.get(count.bad_fills) == refused["stranger"] + refused["again"]
        assert refused["stranger"] and refused["again"]

    simulate(powered_up(dut, 1), settings,
             sender(dut.lookups, items, stall=stall, seed=2),
             receiver(dut.vectors, taken, len(wanted) * beats, stall=stall, seed=3), finish,
             background=[owners, answers], limit=60_000)
    places = Counter()
    for start in range(0, len(taken), beats):
        place = taken[start]["tag"]
        places[place] += 1
        for beat, item in enumerate(taken[start:start + beats]):
            assert item["tag"] == place and item["last"] == (beat == beats - 1)
            assert item["data"] == _vector(wanted[place], beat)
    assert places == Counter(range(len(wanted)))


@pytest.mark.parametrize("wait, good", [(1, False), (2, True)])
def test_a_vector_counts_from_the_second_cycle_after_its_miss(wait, good):
    """The block's requirement of its environment: an owner answers no sooner."""
    dut = made(RemoteCache, CONFIG)

    async def bench(ctx):
        for name, value in (("vector_beats", 1), ("sets", CONFIG.remote_cache_sets)):
            ctx.set(getattr(dut, name), value)
        for port in (dut.misses, dut.vectors):
            ctx.set(port.ready, 1)
        ctx.set(dut.lookups.payload, {"record": _record((1, 2), 3), "destination": 4})
        ctx.set(dut.lookups.valid, 1)
        await ctx.tick().until(dut.lookups.ready)
        ctx.set(dut.lookups.valid, 0)
        miss, = await ctx.tick().sample(dut.misses.payload).until(dut.misses.valid)
        for _ in range(wait - 1):
            await ctx.tick()
        await send_at_once(ctx, dut.fills, {
            "tag": miss.record >> 48, "data": 5, "source": 4, "last": 1})
        vectors = [(await ctx.tick().sample(dut.vectors.valid))[-1] for _ in range(40)]
        assert (any(vectors), ctx.get(dut.counters.bad_fills)) == (good, not good)

    simulate(dut, bench)


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        RemoteCache("tiny")
