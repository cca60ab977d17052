"""Vector store: each hit reads its slot, each waiter its landing row, whole and in order."""

import random
from itertools import pairwise

import pytest

from rtl.cache.vectors import HITS_AHEAD, VectorStore
from tests.rtl.power_up import powered_up
from tests.support import made, quiet_while_idle, receiver, sender, simulate

ROWS, IN_FLIGHT, MOST = 12, 8, 3
LATENCY = VectorStore.LATENCY["hit or waiter", "its first beat"]


def store(**options) -> VectorStore:
    return made(VectorStore, 16, **{"rows": ROWS, "in_flight": IN_FLIGHT, "vector_beats": MOST,
                                    "style": "bram"} | options)


def beat_of(kind: str, number: int, beat: int, age: int = 0) -> int:
    """Return a beat of a slot or of a landing row; ``age`` counts the writes to it."""
    return random.Random(f"{kind} {number} {beat} {age}").getrandbits(512)


async def write(ctx, dut, beat: int, data: int, *, id_: int, slot: int | None = None) -> None:
    """Write a beat to a landing row and, with a slot, to the slot."""
    for name, value in {"valid": 1, "stored": int(slot is not None), "slot": slot or 0,
                        "offset": beat * ROWS, "id": id_, "beat": beat, "data": data}.items():
        ctx.set(getattr(dut.write, name), value)
    await ctx.tick()
    ctx.set(dut.write.valid, 0)
    ctx.set(dut.write.stored, 0)


async def fill(ctx, dut, beats: int) -> None:
    """Fill every slot and every landing row."""
    ctx.set(dut.vector_beats, beats)
    for beat in range(beats):
        for slot in range(ROWS):
            await write(ctx, dut, beat, beat_of("slot", slot, beat), id_=0, slot=slot)
        for id_ in range(IN_FLIGHT):
            await write(ctx, dut, beat, beat_of("id", id_, beat), id_=id_)


def vector(kind: str, number: int, meta: int, beats: int, age: int = 0) -> list[tuple]:
    return [(meta, beat_of(kind, number, beat, age), int(beat == beats - 1))
            for beat in range(beats)]


def vectors(taken: list[dict], beats: int) -> dict[int, list[tuple]]:
    """Return the vectors by their meta; the beats of each must be consecutive."""
    items = [(item["meta"], item["data"], item["last"]) for item in taken]
    parts = [items[at:at + beats] for at in range(0, len(items), beats)]
    assert all(len({meta for meta, *_ in part}) == 1 for part in parts)
    return {part[0][0]: part for part in parts}


@pytest.mark.parametrize("beats, updated, idle, stall", [
    (1, False, 0.0, 0.0), (3, True, 0.4, 0.3), (2, False, 0.0, 0.7), (3, False, 0.7, 0.0)])
def test_vectors_come_whole_in_the_order_of_their_input(beats, updated, idle, stall):
    dut, rng, taken, released = store(updated=updated), random.Random(beats), [], []
    hits = [{"slot": rng.randrange(ROWS), "meta": 2 * n} for n in range(60)]
    waiters = [{"id": rng.randrange(IN_FLIGHT), "meta": 2 * n + 1, "last": rng.getrandbits(1)}
               for n in range(45)]
    total = (len(hits) + len(waiters)) * beats
    ready = [False]

    async def prepare(ctx):
        await fill(ctx, dut, beats)
        ready[0] = True

    def after(bench):
        async def wait(ctx):
            while not ready[0]:
                await ctx.tick()
            await bench(ctx)
        return wait

    async def watch(ctx):
        async for _, _, valid, number in ctx.tick().sample(
                dut.released.valid, dut.released.number):
            if valid:
                released.append(number)

    simulate(powered_up(dut), prepare, after(sender(dut.hits, hits, stall=idle, seed=1)),
             after(sender(dut.waiters, waiters, stall=idle, seed=2)),
             receiver(dut.vectors, taken, total, stall=stall, seed=3),
             background=[watch, quiet_while_idle(
                 dut.idle, [dut.hits.valid, dut.waiters.valid], [dut.vectors.valid])])
    if updated:
        assert all(item["held"] == 1 - item["meta"] % 2 for item in taken)
        assert all(item["slot"] == hits[item["meta"] // 2]["slot"]
                   for item in taken if item["held"])
    found = vectors(taken, beats)
    for kind, name, items in (("slot", "slot", hits), ("id", "id", waiters)):
        mine = [meta for meta in found if meta % 2 == (kind == "id")]
        assert mine == [item["meta"] for item in items]
        for item in items:
            assert found[item["meta"]] == vector(kind, item[name], item["meta"], beats)
    assert released == [item["id"] for item in waiters if item["last"]]


@pytest.mark.parametrize("beats", [1, 3])
def test_a_beat_a_cycle_and_no_waiter_starves(beats):
    """Hits go first, but one of 32 vectors is a waiter's while there is one."""
    dut, taken, count = store(), [], 3 * (HITS_AHEAD + 1)

    async def bench(ctx):
        await fill(ctx, dut, beats)
        ctx.set(dut.hits.payload, {"slot": 3, "meta": 0})
        ctx.set(dut.waiters.payload, {"id": 5, "meta": 1})
        ctx.set(dut.hits.valid, 1)
        ctx.set(dut.waiters.valid, 1)
        for cycle in range(LATENCY + count * beats):
            assert ctx.get(dut.vectors.valid) == (cycle >= LATENCY)
            ctx.set(dut.vectors.ready, 1)
            if cycle >= LATENCY:
                taken.append(ctx.get(dut.vectors.payload.meta))
            await ctx.tick()

    simulate(powered_up(dut), bench)
    waits = [n for n, meta in enumerate(taken[::beats]) if meta]
    assert sum(taken) == 3 * beats
    assert all(b - a == HITS_AHEAD + 1 for a, b in pairwise(waits))


@pytest.mark.parametrize("via, cycles", [("fill", 1), ("update", 2)])
def test_when_a_write_is_in_place(via, cycles):
    """For a beat whose reading begins ``cycles`` later, the new one; the other slots stay."""
    dut, taken, wanted = store(updated=True), [], []

    async def bench(ctx):
        await fill(ctx, dut, 1)
        ctx.set(dut.vectors.ready, 1)
        await ctx.tick().repeat(4)
        for age, slot in enumerate((0, 7, ROWS - 1, 7), 1):
            data = beat_of("slot", slot, 0, age)
            if via == "fill":
                await write(ctx, dut, 0, data, id_=2, slot=slot)
            else:
                ctx.set(dut.updates.payload, {"slot": slot, "beat": 0, "data": data})
                ctx.set(dut.updates.valid, 1)
                assert ctx.get(dut.updates.ready)
                await ctx.tick()
                ctx.set(dut.updates.valid, 0)
            for _ in range(cycles - 1):
                await ctx.tick()
            for name, port in (("slot", dut.hits), ("id", dut.waiters)):
                if name == "id" and via == "update":
                    continue
                ctx.set(port.payload, {"meta": age, name: slot if name == "slot" else 2})
                ctx.set(port.valid, 1)
                while not ctx.get(port.ready):
                    await ctx.tick()
                await ctx.tick()
                ctx.set(port.valid, 0)
                wanted.append((age, data, 1))
        ctx.set(dut.hits.payload, {"meta": 9, "slot": 1})
        ctx.set(dut.hits.valid, 1)
        await ctx.tick()
        ctx.set(dut.hits.valid, 0)
        wanted.append((9, beat_of("slot", 1, 0), 1))
        await ctx.tick().repeat(2 * LATENCY)

    async def collect(ctx):
        async for _, _, valid, item in ctx.tick().sample(dut.vectors.valid, dut.vectors.payload):
            if valid:
                taken.append((item.meta, item.data, item.last))

    simulate(powered_up(dut), bench, background=[collect])
    assert taken == wanted


def test_updates_wait_for_fills_and_none_is_lost():
    dut, rng, wrote = store(updated=True), random.Random(5), []
    latest = {slot: 0 for slot in range(ROWS)}

    async def bench(ctx):
        await fill(ctx, dut, 2)
        age, offered = 0, None
        for _ in range(250):
            fills = rng.random() < 0.6
            other = rng.randrange(ROWS // 2)  # fills and updates go to different slots
            if fills:
                age += 1
                for name, value in {"valid": 1, "stored": 1, "slot": other, "offset": ROWS,
                                    "id": 0, "beat": 1,
                                    "data": beat_of("slot", other, 1, age)}.items():
                    ctx.set(getattr(dut.write, name), value)
                latest[other] = age
            else:
                ctx.set(dut.write.valid, 0)
                ctx.set(dut.write.stored, 0)
            if offered is None and rng.random() < 0.7:
                age += 1
                offered = ROWS // 2 + rng.randrange(ROWS // 2), age
                ctx.set(dut.updates.payload, {"slot": offered[0], "beat": 1,
                                              "data": beat_of("slot", offered[0], 1, age)})
            ctx.set(dut.updates.valid, int(offered is not None))
            if offered is not None and ctx.get(dut.updates.ready):
                latest[offered[0]] = offered[1]
                wrote.append(offered)
                offered = None
            await ctx.tick()
        ctx.set(dut.write.valid, 0)
        ctx.set(dut.write.stored, 0)
        ctx.set(dut.updates.valid, 0)
        await ctx.tick().until(dut.idle)
        await sender(dut.hits, [{"slot": slot, "meta": slot} for slot in range(ROWS)])(ctx)

    taken: list[dict] = []
    simulate(powered_up(dut), bench, receiver(dut.vectors, taken, 2 * ROWS))
    assert len(wrote) > 50
    found = vectors(taken, 2)
    for slot, age in latest.items():
        assert [data for _, data, _ in found[slot]] == [
            beat_of("slot", slot, 0), beat_of("slot", slot, 1, age)]


def test_bits_that_are_not_stored_are_zero():
    dut, taken = store(store_bits=128), []

    async def bench(ctx):
        await fill(ctx, dut, 1)
        await sender(dut.hits, [{"slot": 4, "meta": 1}])(ctx)

    simulate(powered_up(dut), bench, receiver(dut.vectors, taken, 1))
    assert taken[0]["data"] == beat_of("slot", 4, 0) & (1 << 128) - 1
