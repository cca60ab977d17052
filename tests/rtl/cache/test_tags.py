"""Tag pipeline: decisions in order, equal to those of a textbook cache, with late fetches."""

import random

import pytest

from host.placement.sets import CacheSets, set_of
from rtl.cache.tags import TagPipeline
from rtl.keys.hashing import hash_bits
from tests.rtl.cache.driver import KEY_BITS, hash_of
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

WAYS, SETS = 4, 3
LATENCY = TagPipeline.LATENCY["lookup", "its decision"]
LATE = 2 * LATENCY
"""Cycles after which an arrival is visible with certainty."""


def pipeline(in_flight: int, sets: int = SETS) -> TagPipeline:
    return made(TagPipeline, KEY_BITS, 16, rows=sets * WAYS, ways=WAYS, in_flight=in_flight,
                hash_key=hash_bits)


async def clear(ctx, dut, sets: int, **settings: int):
    """Empty all sets, and set the named ports."""
    for name, value in {"sets": sets, **settings}.items():
        ctx.set(getattr(dut, name), value)
    for address in range(sets):
        ctx.set(dut.clear, 1)
        ctx.set(dut.clear_address, address)
        await ctx.tick()
    ctx.set(dut.clear, 0)
    await ctx.tick().repeat(4)


class Decided:
    """Lookups of a few keys; every decision is compared with that of a textbook cache."""

    def __init__(self, in_flight: int, *, enable: int = 1, merge: int = 1, keys: int = 20,
                 idle: float, stall: float, arrive: float, seed: int, count: int = 500,
                 frozen: range = range(0)):
        rng = self.rng = random.Random(seed)
        self.enable, self.merge, self.arrive, self.frozen = enable, merge, arrive, frozen
        self.dut, self.in_flight = pipeline(in_flight), in_flight
        pool = [rng.getrandbits(KEY_BITS) for _ in range(keys)]
        self.items = [{"key": rng.choice(pool), "meta": n} for n in range(count)]
        self.model = CacheSets(SETS, WAYS)
        self.slots: dict[int, int] = {}  # key: slot
        self.phase = [0] * SETS * WAYS
        self.last = [0] * SETS * WAYS  # the id of a slot's last fetch
        self.arrived = [-LATE] * SETS * WAYS  # cycle in which the slot's vector arrived, or None
        self.free, self.inside = list(range(in_flight)), set()
        self.fetches: list[tuple[int, int, int | None]] = []
        self.seen = dict.fromkeys(("hit", "conflict", "unmerged", "evict", "allocate"), 0)
        self.starved, self.cycle = 0, 0
        taken: list[dict] = []
        simulate(powered_up(self.dut, seed), self.around, receiver(
            self.dut.decisions, taken, count, stall=stall, seed=seed + 1),
            lambda ctx: self.look(ctx, taken, idle))

    async def look(self, ctx, taken: list, idle: float):
        dut, frozen = self.dut, self.frozen
        await clear(ctx, dut, SETS, enable=self.enable, merge=self.merge)
        for part in (range(frozen.start), frozen, range(frozen.stop, len(self.items))):
            # ``frozen`` changes when all lookups have settled.
            while len(taken) < part.start or self.fetches:
                await ctx.tick()
            await ctx.tick().repeat(LATE)
            ctx.set(dut.frozen, int(part is frozen))
            await sender(dut.lookups, self.items[part.start:part.stop], stall=idle, seed=1)(ctx)

    async def around(self, ctx):
        """Provide ids, compare decisions as they leave, and let vectors arrive."""
        dut, rng, number = self.dut, self.rng, 0
        while number < len(self.items):
            ctx.set(dut.ids.valid, int(bool(self.free)))
            if self.free:
                ctx.set(dut.ids.payload, self.free[0])
            filled, freed = {"valid": 0, "slot": 0, "phase": 0}, None
            if self.fetches and rng.random() < self.arrive:
                id_, phase, slot = self.fetches.pop(rng.randrange(len(self.fetches)))
                freed = id_
                if slot is not None:
                    filled = {"valid": 1, "slot": slot, "phase": phase}
                    self.arrived[slot] = self.cycle
            for name, value in filled.items():
                ctx.set(getattr(dut.filled, name), value)
            _, _, valid, ready, decision, takes, starved, waits, idle = await ctx.tick().sample(
                dut.decisions.valid, dut.decisions.ready, dut.decisions.payload, dut.ids.ready,
                dut.starved, dut.lookups.valid & ~dut.lookups.ready, dut.idle)
            self.cycle += 1
            assert not (idle and valid)
            assert waits or not starved
            self.starved += starved
            if self.free and takes:
                self.inside.add(self.free.pop(0))
            if freed is not None:
                self.free.append(freed)
            if valid and ready:
                self.compare(self.items[number], decision, number)
                number += 1

    def compare(self, item: dict, decision, number: int):
        key, where = item["key"], set_of(hash_of(item["key"]), SETS)
        assert (decision.key, decision.meta) == (key, item["meta"])
        frozen = number in self.frozen
        assert decision.frozen == frozen
        for name in self.seen:
            self.seen[name] += decision[name]
        present, stands = key in self.slots, self.slots.get(key)
        assert not decision.hit or present
        if not decision.hit:
            assert decision.id in self.inside, "a miss takes an id of its own"
            self.inside.remove(decision.id)
            self.fetches.append((decision.id, decision.phase,
                                 decision.slot if decision.allocate else None))
        else:
            assert (decision.slot, decision.id) == (stands, self.last[decision.slot])
            assert not decision.allocate and not decision.conflict
        if frozen or not (self.enable or self.merge):
            assert not (decision.allocate or decision.evict or decision.conflict)
            assert decision.hit == (frozen and present)
            return
        if decision.conflict:
            # The victim has not arrived, or so recently that the arrival was not visible.
            assert not present and not decision.allocate and not decision.evict
            victim = self.slots[self.model._sets[where].victim()]
            assert self.arrived[victim] is None or self.cycle - self.arrived[victim] < LATE + 60
            return
        had = self.model.access(where, key)
        assert had == present
        if self.enable:
            assert present == bool(decision.hit or decision.unmerged)
        if self.merge:
            assert not decision.unmerged
        assert decision.evict == (self.model.evicted is not None)
        if decision.evict:
            assert decision.evicted == self.model.evicted
            assert self.slots.pop(decision.evicted) == decision.slot
        assert decision.allocate == (not decision.hit and not decision.unmerged)
        if decision.allocate:
            slot = decision.slot
            assert slot // WAYS == where and (stands is None or slot == stands)
            assert slot not in [s for k, s in self.slots.items() if k != key]
            assert self.arrived[slot] is not None, "no way is taken whose vector is to come"
            assert decision.phase == 1 - self.phase[slot]
            self.phase[slot], self.last[slot] = decision.phase, decision.id
            self.arrived[slot], self.slots[key] = None, slot


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("in_flight, idle, stall, arrive", [
    (16, 0.0, 0.0, 0.3), (4, 0.0, 0.2, 0.2), (32, 0.5, 0.0, 0.1), (16, 0.0, 0.7, 0.9)])
def test_decisions_are_those_of_a_textbook(in_flight, idle, stall, arrive):
    run = Decided(in_flight, idle=idle, stall=stall, arrive=arrive, seed=in_flight)
    assert run.seen["hit"] > 50 and run.seen["evict"] > 20 and not run.seen["unmerged"]
    assert run.seen["conflict"] or arrive > 0.5
    assert in_flight > 4 or run.starved


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("enable, merge", [(1, 0), (0, 1), (0, 0)])
def test_which_entries_hit(enable, merge):
    run = Decided(16, enable=enable, merge=merge, idle=0.2, stall=0.1, arrive=0.15, seed=7)
    assert (run.seen["hit"] > 0) == bool(enable or merge)
    assert (run.seen["unmerged"] > 0) == bool(enable and not merge)
    assert (run.seen["allocate"] > 0) == bool(enable or merge)


def test_frozen_lookups_change_nothing():
    run = Decided(16, idle=0.1, stall=0.1, arrive=0.5, seed=5, keys=14,
                  frozen=range(150, 350))
    assert run.seen["hit"] > 100


def test_a_lookup_a_cycle_and_latency():
    """Of a key that is there, whatever the decisions before: so it gives back the ids it takes."""
    dut, taken, count, came = pipeline(64), [], 60, []
    items = [{"key": 77 + n % 3, "meta": n} for n in range(count)]

    async def bench(ctx):
        await clear(ctx, dut, SETS, enable=1, merge=1)
        for id_ in range(20):
            ctx.set(dut.ids.payload, id_)
            ctx.set(dut.ids.valid, 1)
            await ctx.tick()
        ctx.set(dut.ids.valid, 0)
        ctx.set(dut.decisions.ready, 1)
        for cycle in range(count + LATENCY):
            ctx.set(dut.lookups.valid, int(cycle < count))
            if cycle < count:
                ctx.set(dut.lookups.payload, items[cycle])
                assert ctx.get(dut.lookups.ready)
            if ctx.get(dut.decisions.valid):
                taken.append(ctx.get(dut.decisions.payload.meta))
                came.append(cycle)
            await ctx.tick()

    simulate(powered_up(dut), bench)
    assert taken == list(range(count)) and came == list(range(LATENCY, LATENCY + count))
