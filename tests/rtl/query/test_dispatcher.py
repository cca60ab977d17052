"""Dispatcher: each slot reserves its place, and each lookup goes to its owner with the place."""

import random

import pytest

from rtl.query import Dispatcher
from tests.support import a_bit_apart, counts_of, made, receiver, sender, simulate

NODE = 3
KEY, KEY_END, EMPTY = 0, 1, 2
STALLS = [(0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 0.5, 0.0),
          (0.0, 0.0, 0.0, 0.8), (0.3, 0.3, 0.3, 0.3)]


def random_slots(count: int, rng: random.Random, owners=range(8), kinds=(KEY, KEY_END, EMPTY)):
    return [{"key": {"row": rng.getrandbits(36), "table": rng.getrandbits(12)},
             "kind": rng.choice(kinds), "owner": rng.choice(owners),
             "sample": rng.getrandbits(32), "step": rng.getrandbits(16), "last": rng.getrandbits(1)}
            for _ in range(count)]


def owned(slots):
    """Return the slots with whether this node owns their keys, in the form of the checker."""
    return [slot | {"mine": int(slot["kind"] != EMPTY and slot["owner"] == NODE)}
            for slot in slots]


def samples_in(slots):
    """Return the sample and step of each first slot."""
    firsts = [n for n in range(len(slots)) if n == 0 or slots[n - 1]["last"]]
    return [{"sample": slots[n]["sample"], "step": slots[n]["step"]} for n in firsts]


async def grant(ctx, dut, count, first, stall, reserved, rng):
    """Grant ``count`` places from ``first`` on and append their slots to ``reserved``; with
    probability ``stall`` no place is free, and ``next_landing`` is random."""
    while len(reserved) < count:
        ready = rng.random() >= stall
        ctx.set(dut.reserve.ready, ready)
        ctx.set(dut.next_landing, (first + len(reserved)) & 0xFFFF if ready else 0xDEAD)
        _, _, valid, payload = await ctx.tick().sample(dut.reserve.valid, dut.reserve.payload)
        if ready and valid:
            reserved.append({n: payload[n] for n in payload.shape().members})
    ctx.set(dut.reserve.ready, 0)


def run(slots, stalls, first=65500, interact=True):
    """Run slots; places count up from ``first``. Return the output, counters, and the cycles."""
    dut, reserved, local, remote, dense = made(Dispatcher), [], [], [], []
    counters = {}
    wanted = samples_in(slots) if interact else []
    mine = [s for s in slots if s["kind"] != EMPTY and s["owner"] == NODE]
    theirs = [s for s in slots if s["kind"] != EMPTY and s["owner"] != NODE]
    rng = random.Random(6)

    async def hold(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.interact, interact)
        await grant(ctx, dut, len(slots), first, stalls[1], reserved, rng)

    async def watch(ctx):
        await ctx.tick().until(dut.idle)
        while (len(reserved) < len(slots) or len(local) + len(remote) < len(mine) + len(theirs)
               or len(dense) < len(wanted)):
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.dense.valid)
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(dut, sender(dut.i, owned(slots), stall=stalls[0]), hold, watch,
                      receiver(dut.local, local, len(mine), stall=stalls[2]),
                      receiver(dut.dense, dense, len(wanted), stall=stalls[3], seed=7),
                      receiver(dut.remote, remote, len(theirs), stall=stalls[2], seed=5))
    assert dense == wanted
    return reserved, local, remote, counters, cycles


@pytest.mark.few(5)
@pytest.mark.parametrize("interact", [False, True])
@pytest.mark.parametrize("stalls", STALLS)
def test_each_slot_its_place_and_its_owner(stalls, interact):
    slots = random_slots(300, random.Random(1), (NODE, NODE, NODE, 0, 1, 7))
    reserved, local, remote, counters, _ = run(slots, stalls, interact=interact)
    assert reserved == [{n: s[n] for n in ("kind", "sample", "step", "last")} for s in slots]
    expected_local, expected_remote = [], []
    for number, s in enumerate(slots):
        landing = (65500 + number) & 0xFFFF
        if s["kind"] == EMPTY:
            continue
        if s["owner"] == NODE:
            expected_local.append({"key": s["key"], "landing": landing, "node": NODE,
                                   "step": s["step"]})
        else:
            expected_remote.append({
                "destination": s["owner"], "step": s["step"],
                "record": s["key"]["row"] | s["key"]["table"] << 36 | landing << 48})
    assert local == expected_local and remote == expected_remote
    assert (counters["local"], counters["remote"]) == (len(local), len(remote))
    assert bool(counters["stall_hold"]) == (stalls[1] > 0)
    assert bool(counters["stall_local"] + counters["stall_remote"]) == (stalls[2] > 0)
    assert bool(counters["stall_dense"]) == (interact and stalls[3] > 0)


@pytest.mark.parametrize("owners, kinds", [
    ([NODE], [KEY_END]), ([1, 2], [KEY_END]), (range(6), [KEY, KEY_END, EMPTY]), ([0], [EMPTY])])
def test_one_slot_a_cycle(owners, kinds):
    slots = random_slots(300, random.Random(2), owners, kinds)
    *_, cycles = run(slots, STALLS[0])
    assert 300 / cycles >= 0.95


def test_local_stall_is_counted_and_holds_up_those_behind():
    dut = made(Dispatcher)
    slots = random_slots(4, random.Random(3), [NODE], [KEY]) + random_slots(
        1, random.Random(4), [1], [KEY])

    async def bench(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.reserve.ready, 1)
        ctx.set(dut.remote.ready, 1)
        await ctx.tick().repeat(20)
        # Two lookups wait in the buffer towards the owner; the third reserved no place.
        assert ctx.get(dut.counters.local) == 2 and not ctx.get(dut.reserve.valid)
        assert ctx.get(dut.counters.stall_local) > 10 and ctx.get(dut.counters.stall_remote) == 0
        assert ctx.get(dut.counters.remote) == 0
        ctx.set(dut.local.ready, 1)
        await ctx.tick().until(dut.remote.valid)
        await ctx.tick()
        assert ctx.get(dut.counters.local) == 4 and ctx.get(dut.counters.remote) == 1

    simulate(dut, bench, background=[sender(dut.i, owned(slots))])


@pytest.mark.parametrize("first", [0, 0x7FFE, 0xFFFD])
def test_slots_wait_for_their_step_to_open(first):
    """Send five slots of each of six steps; each step opens some time after the previous one."""
    dut, local, remote, opened = made(Dispatcher), [], [], []
    steps = [first + n & 0xFFFF for n in range(6)]
    slots = [slot | {"step": step} for step in steps
             for slot in random_slots(5, random.Random(step), [NODE, 1], [KEY])]
    mine = sum(slot["owner"] == NODE for slot in slots)

    async def bench(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.training, 1)
        ctx.set(dut.reserve.ready, 1)
        for n, step in enumerate(steps):
            ctx.set(dut.open_step, step)
            await ctx.tick().repeat(20)
            opened.append(ctx.get(dut.counters.local) + ctx.get(dut.counters.remote))
            waits = ctx.get(dut.counters.stall_step)
            assert ctx.get(dut.idle) == (n == len(steps) - 1)
            await ctx.tick()
            assert ctx.get(dut.counters.stall_step) - waits == (n < len(steps) - 1)
        assert ctx.get(dut.counters.stall_hold) == 0

    simulate(dut, bench, sender(dut.i, owned(slots)), receiver(dut.local, local, mine),
             receiver(dut.remote, remote, len(slots) - mine))
    assert opened == [5, 10, 15, 20, 25, 30]
    assert [lookup["step"] for lookup in local] == [
        slot["step"] for slot in slots if slot["owner"] == NODE]


def test_steps_before_the_open_one_go_and_without_training_all_do():
    for training, open_step in ((1, 9), (0, 0)):
        dut, remote = made(Dispatcher), []
        slots = [slot | {"step": step} for slot, step in zip(
            random_slots(4, random.Random(1), [1], [KEY]),
            (9, 8, 9 - 0x8000 + 1 & 0xFFFF, 3), strict=True)]

        async def bench(ctx, dut=dut, training=training, open_step=open_step):
            ctx.set(dut.node, NODE)
            ctx.set(dut.training, training)
            ctx.set(dut.open_step, open_step)
            ctx.set(dut.reserve.ready, 1)

        simulate(dut, bench, sender(dut.i, owned(slots)), receiver(dut.remote, remote, 4), limit=50)


@pytest.mark.parametrize("overtake", [0, 1])
@pytest.mark.parametrize("first", [0, 0xFFFD])
def test_lookups_overtake_for_owners_that_are_done(first, overtake):
    """Owners complete in random order; lookups leave in order of completion, each after its
    owner."""
    rng, dut, left, early = random.Random(first), Dispatcher(8), [], [0]
    steps = [first + n & 0xFFFF for n in range(6)]
    slots = [slot | {"step": step} for step in steps for slot in random_slots(
        12, rng, rng.sample(range(8), 3))]

    async def bench(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.training, 1)
        ctx.set(dut.overtake, overtake)
        for ready in (dut.reserve.ready, dut.local.ready, dut.remote.ready):
            ctx.set(ready, 1)
        for step in steps:
            ctx.set(dut.open_step, step)
            ctx.set(dut.written, 0)
            done, order = set(), rng.sample(range(8), 8)
            for owner in order:
                for _ in range(rng.randrange(9)):
                    look(ctx, step, done)
                    await ctx.tick()
                done.add(owner)
                ctx.set(dut.written, sum(1 << n for n in done))
            look(ctx, step, done)
            await ctx.tick()

    def look(ctx, step, done):
        for port, owner in ((dut.local, NODE), (dut.remote, ctx.get(
                dut.remote.payload.destination))):
            if not ctx.get(port.valid):
                continue
            ahead = ctx.get(port.payload.step) - step & 0xFFFF
            assert ahead >= 0x8000 or ahead == 0 or (ahead == 1 and owner in done and overtake)
            early[0] += ahead == 1
            left.append((ctx.get(port.payload.step), owner))

    simulate(dut, bench, background=[sender(dut.i, owned(slots))])
    assert (early[0] > 5) == overtake
    for local in (True, False):
        expected = [(slot["step"], slot["owner"]) for slot in slots
                    if slot["kind"] != EMPTY and (slot["owner"] == NODE) == local]
        got = [lookup for lookup in left if (lookup[1] == NODE) == local]
        assert got == expected[:len(got)] and len(got) >= len(expected) - 12


def test_a_lookup_leaves_four_cycles_after_its_owner_is_done():
    """Without a place of its own in the queue, a lookup makes the following lookups wait, too."""
    dut, left = Dispatcher(4), []
    slots = [slot | {"step": 1, "owner": owner} for slot, owner in zip(
        random_slots(3, random.Random(1), kinds=[KEY]), (1, 2, 1), strict=True)]

    async def bench(ctx):
        for port in (dut.training, dut.overtake, dut.reserve.ready, dut.remote.ready):
            ctx.set(port, 1)
        ctx.set(dut.node, NODE)
        for cycle in range(40):
            ctx.set(dut.written, {20: 2, 30: 6}.get(cycle, ctx.get(dut.written)))
            await ctx.tick()
            if ctx.get(dut.remote.valid):
                left.append((cycle + 1, ctx.get(dut.remote.payload.destination)))
        assert ctx.get(dut.counters.stall_step) > 25

    simulate(dut, bench, background=[sender(dut.i, owned(slots))])
    assert left == [(23, 1), (33, 2), (35, 1)]


@pytest.mark.parametrize("step", a_bit_apart(1)[1:15])
def test_no_step_but_the_next_overtakes(step):
    """Test later steps that differ by one bit from the next step."""
    dut, [slot] = made(Dispatcher, 4), random_slots(1, random.Random(1), [1], [KEY])

    async def bench(ctx):
        for port in (dut.training, dut.overtake, dut.reserve.ready, dut.remote.ready):
            ctx.set(port, 1)
        ctx.set(dut.written, 0xF)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.counters.remote) == 0 and ctx.get(dut.counters.stall_step) > 5

    simulate(dut, bench, background=[sender(dut.i, owned([slot | {"step": step}]))])


def test_one_slot_a_cycle_in_training():
    dut, remote = made(Dispatcher), []
    slots = [slot | {"step": n // 50} for n, slot in enumerate(
        random_slots(300, random.Random(2), [1], [KEY]))]

    async def bench(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.training, 1)
        ctx.set(dut.open_step, 5)
        ctx.set(dut.reserve.ready, 1)

    cycles = simulate(dut, bench, sender(dut.i, owned(slots)), receiver(dut.remote, remote, 300))
    assert 300 / cycles >= 0.95


def test_shares_leave_as_slots_do():
    """With ``unique``, slots come from the other input; the block's own input is not taken."""
    rng, dut, local, remote = random.Random(8), made(Dispatcher), [], []
    shares, others = (random_slots(60, rng) for _ in range(2))
    mine = sum(slot["mine"] for slot in owned(shares))
    theirs = sum(slot["kind"] != EMPTY for slot in shares) - mine

    async def bench(ctx):
        ctx.set(dut.node, NODE)
        ctx.set(dut.unique, 1)
        ctx.set(dut.reserve.ready, 1)

    simulate(dut, bench, sender(dut.shares, owned(shares), stall=0.3),
             receiver(dut.local, local, mine), receiver(dut.remote, remote, theirs),
             background=[sender(dut.i, owned(others))])
    keys = [slot["key"] for slot in owned(shares) if slot["mine"]]
    assert [lookup["key"] for lookup in local] == keys
    assert [record["destination"] for record in remote] == [
        slot["owner"] for slot in shares if slot["kind"] != EMPTY and slot["owner"] != NODE]
