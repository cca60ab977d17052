"""Dispatcher with owner-pooled bags: a bag reserves one place and starts, own or of another owner.
"""

import random

import pytest

from rtl.query import Dispatcher
from tests.rtl.query.test_dispatcher import EMPTY, KEY, KEY_END, NODE, grant, owned, samples_in
from tests.rtl.query.test_dispatcher import random_slots as random_keys
from tests.support import counts_of, made, receiver, sender, simulate

PORTS = ("local", "remote", "bags", "dense")


def random_slots(count: int, rng: random.Random, share: float, **kinds) -> list[dict]:
    """Return slots, a ``share`` of them bags."""
    return [slot | {"mean": rng.getrandbits(1), "final_beat": rng.getrandbits(4)} | (
                {"bag": 1, "kind": KEY_END} if rng.random() < share else {"bag": 0})
            for slot in random_keys(count, rng, (NODE, NODE, 0, 1, 7), **kinds)]


def expected_of(slots, first, interact):
    """Return the output at each port, and the reserved slots."""
    out, reserved = {port: [] for port in PORTS}, []
    for number, slot in enumerate(owned(slots)):
        row, landing = slot["key"]["row"], (first + number) & 0xFFFF
        reserved.append({name: slot[name] for name in ("kind", "sample", "step", "last")} | {
            "keys": (row & 0xFFFF) * slot["bag"], "mean": slot["mean"],
            "final_beat": slot["final_beat"]})
        if slot["bag"]:
            out["bags"].append({"destination": slot["owner"], "step": slot["step"],
                                "landing": landing, "own": slot["mine"],
                                "final_beat": slot["final_beat"]})
        elif slot["mine"]:
            out["local"].append({"key": slot["key"], "landing": landing, "node": NODE,
                                 "step": slot["step"]})
        elif slot["kind"] != EMPTY:
            out["remote"].append({
                "destination": slot["owner"], "step": slot["step"],
                "record": row | slot["key"]["table"] << 36 | landing << 48})
    out["dense"] = samples_in(slots) if interact else []
    return out, reserved


def run(slots, stalls, interact=True, unique=False):
    """Run slots; return the counters and the cycles. ``stalls``: of the slots, of the places, of
    lookups, of bags, and of dense vectors."""
    dut, first, reserved, counters = made(Dispatcher, 4, bags=True), 65500, [], {}
    expected, slots_out = expected_of(slots, first, interact)
    taken, rng = {port: [] for port in PORTS}, random.Random(6)

    async def hold(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.interact, interact)
        ctx.set(dut.unique, unique)
        await grant(ctx, dut, len(slots), first, stalls[1], reserved, rng)
        while any(len(taken[port]) < len(expected[port]) for port in PORTS):
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(
        dut, hold, sender(dut.shares if unique else dut.i, owned(slots), stall=stalls[0]),
        *(receiver(getattr(dut, port), taken[port], len(expected[port]), stall=stall, seed=k)
          for k, (port, stall) in enumerate(zip(PORTS, (stalls[2], *stalls[2:]), strict=True))))
    assert reserved == slots_out and taken == expected
    assert [counters[port] for port in PORTS[:3]] == [len(expected[port]) for port in PORTS[:3]]
    return counters, cycles


@pytest.mark.few(3)
@pytest.mark.parametrize("stalls, interact, unique", [
    ((0.0, 0.0, 0.0, 0.0, 0.0), True, False), ((0.3, 0.3, 0.3, 0.3, 0.3), True, False),
    ((0.0, 0.0, 0.0, 0.7, 0.0), False, False), ((0.0, 0.5, 0.0, 0.0, 0.0), True, True),
    ((0.0, 0.0, 0.6, 0.0, 0.0), False, True), ((0.0, 0.0, 0.0, 0.0, 0.8), True, False)])
def test_each_bag_its_place_and_its_owner(stalls, interact, unique):
    counters, _ = run(random_slots(300, random.Random(1), 0.4), stalls, interact, unique)
    for stall, count in ((stalls[1], counters["stall_hold"]), (stalls[3], counters["stall_bags"]),
                         (stalls[2], counters["stall_local"] + counters["stall_remote"])):
        # A buffer of two hides rare stalls.
        assert count if stall >= 0.5 else stall or not count


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_one_slot_a_cycle(share):
    slots = random_slots(300, random.Random(2), share, kinds=(KEY, KEY_END, EMPTY))
    _, cycles = run(slots, (0.0,) * 5)
    assert 300 / cycles >= 0.95


def test_a_bag_leaves_as_soon_as_a_lookup():
    dut, came = made(Dispatcher, bags=True), []

    async def watch(ctx):
        ctx.set(dut.reserve.ready, 1)
        for cycle in range(6):
            if ctx.get(dut.bags.valid):
                came.append(cycle)
            ctx.set(dut.bags.ready, 1)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, watch, sender(dut.i, owned(random_slots(1, random.Random(3), 1.0))))
    assert came == [Dispatcher.LATENCY["slot", "bag"]]


def test_bags_wait_for_their_step():
    dut, slots = made(Dispatcher, bags=True), random_slots(4, random.Random(4), 1.0)
    slots = [slot | {"step": n // 2} for n, slot in enumerate(slots)]

    async def bench(ctx):
        for port in (dut.training, dut.reserve.ready, dut.bags.ready):
            ctx.set(port, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.counters.bags) == 2 and ctx.get(dut.counters.stall_step) > 10
        # Packets of the open step may leave.
        assert not ctx.get(dut.waiting)
        ctx.set(dut.open_step, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.counters.bags) == 4

    simulate(dut, bench, sender(dut.i, owned(slots)))


@pytest.mark.parametrize("number", [6, 2])
def test_a_waiting_bag_reserves_no_place(number):
    """Two bags wait in the buffer. Lookups pass them, but not a third bag."""
    rng, dut = random.Random(5), made(Dispatcher, bags=True)
    slots = random_slots(number, rng, 1.0)
    if number == 2:
        slots += random_slots(5, rng, 0.0, kinds=(KEY,))

    async def bench(ctx):
        ctx.set(dut.reserve.ready, 1)
        ctx.set(dut.local.ready, 1)
        ctx.set(dut.remote.ready, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.counters.bags) == 2 and not ctx.get(dut.reserve.valid)
        assert ctx.get(dut.counters.stall_hold) == 0
        assert ctx.get(dut.waiting) == (number > 2)
        if number > 2:
            assert ctx.get(dut.counters.stall_bags) > 10
        else:
            assert ctx.get(dut.counters.stall_bags) == 0
            assert ctx.get(dut.counters.local) + ctx.get(dut.counters.remote) == 5
        assert not ctx.get(dut.idle)

    simulate(dut, bench, background=[sender(dut.i, owned(slots))])
