"""Query unpacker: records in order, one per cycle; lost beats leave a gap; credit of whole
beats."""

import random

import pytest

from rtl.query import QueryUnpacker
from tests.rtl.query.gaps import reported_twice
from tests.support import made, receiver, sender, simulate

LATENCY = QueryUnpacker.LATENCY["beat", "its first record"]


def beats_of(count: int, seed: int) -> list[dict]:
    rng = random.Random(seed)
    return [{"data": rng.getrandbits(512), "records": rng.choice([8, 8, rng.randrange(1, 9)]),
             "source": 0, "step": rng.getrandbits(16), "last": 0} for _ in range(count)]


def records_of(beat: dict) -> list[tuple[int, int]]:
    return [(beat["data"] >> 64 * k & (1 << 64) - 1, beat["step"]) for k in range(beat["records"])]


@pytest.mark.parametrize("idle, stall", [(0.0, 0.0), (0.95, 0.0), (0.8, 0.5)])
def test_records_leave_in_order(idle, stall):
    dut, taken = made(QueryUnpacker, 128), []
    beats = beats_of(100, seed=int(100 * idle))
    wanted = [record for beat in beats for record in records_of(beat)]

    async def look(ctx):
        while len(taken) < len(wanted) or not ctx.get(dut.idle):
            await ctx.tick()
        assert ctx.get(dut.consumed) == len(beats)

    simulate(dut, sender(dut.i, beats, stall=idle), look,
             receiver(dut.o, taken, len(wanted), stall=stall))
    assert [(item["record"], item["step"]) for item in taken] == wanted
    assert not any(item["gap"] or item["marker"] for item in taken)


def test_one_record_a_cycle_after_the_latency():
    dut, taken = made(QueryUnpacker, 32), []
    beats = [beat | {"records": 8} for beat in beats_of(20, seed=1)]
    cycles = simulate(dut, sender(dut.i, beats), receiver(dut.o, taken, 160))
    assert cycles <= LATENCY + 160 + 2


@pytest.mark.parametrize("then", [0, 5], ids=["nothing follows", "beats follow"])
def test_lost_beats_leave_one_gap(then):
    """Beats that do not fit are dropped. The next record reports the gap, or a marker if there is
    no record."""
    depth = 8
    dut, taken, dropped = made(QueryUnpacker, depth), [], []
    beats = [beat | {"records": 8} for beat in beats_of(depth + 6, seed=3)]
    later = beats_of(then, seed=4)

    async def watch(ctx):
        async for _, _, valid, gone, beat in ctx.tick().sample(
                dut.i.valid, dut.dropped, dut.i.payload):
            if valid and gone:
                dropped.append(beat["step"])

    async def bench(ctx):
        await sender(dut.i, beats)(ctx)
        assert not ctx.get(dut.idle)
        if then:
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(12)  # room for one more beat, and the gap has not been reported
            ctx.set(dut.o.ready, 0)
            await sender(dut.i, later)(ctx)
        await drain(ctx)

    async def drain(ctx):
        ctx.set(dut.o.ready, 1)
        while not ctx.get(dut.idle):
            await ctx.tick()

    async def collect(ctx):
        async for _, _, valid, ready, item in ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload):
            if valid and ready:
                taken.append({name: item[name] for name in item.shape().members})

    simulate(dut, bench, background=[watch, collect])
    kept = [beat for beat in beats if beat["step"] not in dropped]
    assert len(dropped) >= 2 and len(kept) >= depth
    first = [record for beat in kept for record in records_of(beat)]
    assert [(item["record"], item["step"]) for item in taken[:len(first)]] == first
    assert not any(item["gap"] for item in taken[:len(first)])
    rest = taken[len(first):]
    assert sum(item["gap"] for item in rest) == 1 + (then > 0 and later_lost(dropped, later))
    if not then:
        assert len(rest) == 1 and rest[0]["marker"] and rest[0]["step"] == dropped[-1]
    else:
        assert rest[0]["gap"]


def later_lost(dropped: list[int], later: list[dict]) -> bool:
    return any(beat["step"] in dropped for beat in later)


@pytest.mark.parametrize("taken, first", [(8, None), (10, 0), (11, 0)])
def test_a_marker_has_the_step_of_its_own_gap(taken, first):
    """A second packet is dropped while the marker of the first one waits."""
    assert reported_twice(made(QueryUnpacker, 8), taken) == [first, 1]
