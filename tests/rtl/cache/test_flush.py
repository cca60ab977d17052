"""Flush during traffic: each vector is either old or new, and the cache then fetches again."""

import random

import pytest

from rtl.cache import LocalCache, RemoteCache
from rtl.cache.flush import CacheFlush
from rtl.config import preset
from rtl.formats import LookupRecord
from tests.support import made, simulate

BEATS, KEYS, LOOKUPS = 2, 12, 240
FLUSHES = (40, 41, 120, 160)
"""Lookups after which rows change and a flush begins; some flushes begin during another one."""


class _Traffic:
    """Lookups of a cache, and the memory behind it, whose rows change with each flush."""

    def __init__(self, dut, remote: bool, seed: int, enable: int):
        self.dut, self.remote, self.enable = dut, remote, enable
        self.rng = random.Random(seed)
        self.version, self.open, self.got = 0, {}, 0
        self.waiting: list = []
        self.asked, self.beats = 0, {}

    def lookup(self, tag: int) -> dict:
        key = {"row": self.rng.randrange(KEYS), "table": 1}
        if not self.remote:
            return {"key": key, "meta": tag}
        record = LookupRecord.const({**key, "landing": tag}).as_value().value
        return {"destination": 3, "step": 5, "record": record}

    async def drive(self, ctx):
        dut, tag, due = self.dut, 0, list(FLUSHES)
        for name, value in (("enable", self.enable), ("sets", 2), ("vector_beats", BEATS)):
            ctx.set(getattr(dut, name), value)
        if self.remote:
            ctx.set(dut.merge, 1)
        fell = 0
        item, answer, cycle = None, [], 0
        while self.got < LOOKUPS:
            begins = bool(due) and tag >= due[0]
            ctx.set(dut.flush, begins)
            if begins:
                due.pop(0)
                self.version += 1
            if item is None and tag < LOOKUPS and len(self.open) < 12 and self.rng.random() < 0.8:
                item = self.lookup(tag % 64)
            ctx.set(dut.lookups.valid, item is not None)
            if item is not None:
                ctx.set(dut.lookups.payload, item)
            ctx.set(dut.misses.ready, self.rng.random() < 0.7)
            ctx.set(dut.vectors.ready, self.rng.random() < 0.7)
            cycle += 1
            assert cycle < 3_000, "lookups wait for ever"
            # No answer arrives in the cycle after its request.
            ready = [k for k, (since, _) in enumerate(self.waiting) if cycle > since + 3]
            if not answer and ready and self.rng.random() < 0.2:
                _, fill = self.waiting.pop(self.rng.choice(ready))
                answer = [fill | {"data": self.version, "last": k == BEATS - 1}
                          for k in range(BEATS)]
            ctx.set(dut.fills.valid, bool(answer))
            if answer:
                ctx.set(dut.fills.payload, answer[0])
            flushing = ctx.get(dut.flushing) or begins
            taken = item is not None and ctx.get(dut.lookups.ready)
            missed = ctx.get(dut.misses.valid) and ctx.get(dut.misses.ready)
            miss = ctx.get(dut.misses.payload) if missed else None
            filled = bool(answer) and ctx.get(dut.fills.ready)
            out = ctx.get(dut.vectors.valid) and ctx.get(dut.vectors.ready)
            beat = ctx.get(dut.vectors.payload) if out else None
            if not flushing:
                fell = self.version
            if taken:
                # A lookup taken after the end of the flush gets new rows.
                self.open[tag % 64] = fell
                tag, item = tag + 1, None
            if miss is not None:
                self.asked += 1
                if self.remote:
                    record = LookupRecord.from_bits(miss.record)
                    self.waiting.append(
                        (cycle, {"tag": record.landing, "source": miss.destination}))
                else:
                    self.waiting.append((cycle, {"id": miss.id}))
            if filled:
                answer.pop(0)
            if beat is not None:
                place = beat.tag if self.remote else beat.meta
                assert self.open[place] <= beat.data <= self.version
                # Both beats of a vector have the same version.
                assert self.beats.setdefault(place, beat.data) == beat.data
                if beat.last:
                    del self.open[place], self.beats[place]
                    self.got += 1
            await ctx.tick()
        for _ in range(60):
            await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.flushing) and not due


@pytest.mark.thorough
@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("enable", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_rows_are_fetched_again(remote, enable):
    dut = (RemoteCache if remote else LocalCache)(preset("tiny").with_fields(max_dimension=32))
    traffic = _Traffic(dut, remote, 7 + enable, enable)
    simulate(dut, traffic.drive)
    # With the cache on, each row is fetched about once after each flush.
    assert not enable or 2 * KEYS <= traffic.asked < LOOKUPS * 2 / 3


def test_the_cache_is_cleared_when_it_is_empty():
    """Each flush clears the cache once, with no lookup inside and no fetch outstanding. The flush
    ends after the cache is clear."""
    dut, rng = made(CacheFlush, 4), random.Random(3)
    cleared = []

    async def bench(ctx):
        inside = owed = clears = count = 0
        while len(cleared) < 30:
            flushing = ctx.get(dut.flushing)
            # Lookups that wait for a fetch do not clear ``idle``.
            busy = inside > owed
            asked = busy and owed < 4 and rng.random() < 0.5
            landed = not asked and owed > 0 and not clears and rng.random() < 0.1
            ctx.set(dut.idle, not (busy or landed or clears))
            ctx.set(dut.asked, asked)
            ctx.set(dut.landed, landed)
            begins = not flushing and rng.random() < 0.05
            ctx.set(dut.flush, begins)
            forget = ctx.get(dut.forget)
            if forget:
                assert flushing and not (inside or owed or clears)
                count += 1
            enters = not flushing and inside < 8 and rng.random() < 0.5
            leaves = busy and not asked and rng.random() < 0.5
            await ctx.tick()
            if begins:
                assert ctx.get(dut.flushing)
            elif flushing and not ctx.get(dut.flushing):
                assert count == 1 and not clears
                cleared.append(count)
                count = 0
            elif not flushing:
                assert not ctx.get(dut.flushing)
            inside += enters - leaves
            owed += asked - landed
            clears = 5 if forget else max(clears - 1, 0)

    simulate(dut, bench, limit=20_000)
    assert cleared == [1] * 30


def test_a_flush_that_begins_as_the_cache_is_cleared():
    """The cache is cleared again."""
    dut, seen = made(CacheFlush, 4), []

    async def bench(ctx):
        ctx.set(dut.idle, 1)
        for cycle in range(12):
            ctx.set(dut.flush, cycle == 0 or (ctx.get(dut.forget) and not seen))
            if ctx.get(dut.forget):
                seen.append(cycle)
            await ctx.tick()
        assert not ctx.get(dut.flushing)

    simulate(dut, bench)
    assert len(seen) == 2 and seen[1] == seen[0] + 1
