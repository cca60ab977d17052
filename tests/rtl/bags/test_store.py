"""SegmentStore: committed segments leave once, in order; revoked segments never leave."""

import random

import pytest
from amaranth.hdl import Value

from rtl.bags.layouts import Segment
from rtl.bags.store import SegmentStore
from tests.support import decoder, made, receiver, simulate

LATENCY = SegmentStore.LATENCY["commit", "its first segment"]


def segments(count: int, rng: random.Random) -> list[dict]:
    return [decoder(Segment)(rng.getrandbits(Segment.size)) for _ in range(count)]


class Feed:
    """Groups of segments, each with a commit or a revoke beside or behind its last segment."""

    def __init__(self, depth: int, groups: int, rng: random.Random, gap: float = 0.0):
        self._rng, self._gap = rng, gap
        self.groups = [(segments(rng.choice([0, 1, 2, depth, rng.randrange(depth + 1)]), rng),
                        rng.random() < 0.6) for _ in range(groups)]
        self.kept = [each for group, good in self.groups if good for each in group]

    def bench(self, dut: SegmentStore):
        bits = Value.cast(dut.i.payload)

        async def bench(ctx):
            for group, good in self.groups:
                beside = bool(group) and self._rng.random() < 0.7
                for number, each in enumerate(group):
                    ends = beside and number == len(group) - 1
                    await self._send(ctx, dut, bits, each, (dut.commit if good else dut.revoke)
                                     if ends else None)
                if not beside:
                    await self._pulse(ctx, dut.commit if good else dut.revoke)
            while not ctx.get(dut.idle):
                await ctx.tick()
            assert ctx.get(dut.level) == 0

        return bench

    async def _send(self, ctx, dut, bits, item: dict, ends) -> None:
        while self._rng.random() < self._gap:
            ctx.set(bits, self._rng.getrandbits(len(bits)))
            await ctx.tick()
        ctx.set(dut.i.payload, item)
        ctx.set(dut.i.valid, 1)
        while not ctx.get(dut.i.ready):
            await ctx.tick()
        if ends is None:
            await ctx.tick()
        else:
            await self._pulse(ctx, ends)
        ctx.set(dut.i.valid, 0)

    async def _pulse(self, ctx, signal) -> None:
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)


@pytest.mark.parametrize("depth", [2, 5, 16])
@pytest.mark.parametrize("gap, stall", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5)])
def test_committed_segments_leave_in_order(depth, gap, stall):
    feed, taken = Feed(depth, 60, random.Random(depth), gap), []
    dut = made(SegmentStore, depth)
    simulate(dut, feed.bench(dut), receiver(dut.o, taken, len(feed.kept), stall=stall))
    assert taken == feed.kept


def test_latency_and_rate():
    """Segments leave without a gap from ``commit`` on, however late it is."""
    rng, dut, taken = random.Random(1), made(SegmentStore, 16), []
    sent = segments(9, rng)

    async def feed(ctx):
        ctx.set(dut.o.ready, 1)
        for item in sent:
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.commit, item is sent[-1])
            assert ctx.get(dut.i.ready) and ctx.get(dut.idle)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.commit, 0)
        assert ctx.get(dut.level) == 9 and not ctx.get(dut.idle)
        for _ in range(LATENCY + 10):
            taken.append(ctx.get(dut.o.valid))
            await ctx.tick()

    simulate(dut, feed)
    assert taken == [0] * (LATENCY - 1) + [1] * 9 + [0] * 2


def test_a_full_store_waits_for_its_reader():
    dut, sent = made(SegmentStore, 4), segments(4, random.Random(2))

    async def feed(ctx):
        for item in sent:
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        for _ in range(5):
            assert not ctx.get(dut.i.ready) and not ctx.get(dut.o.valid)
            await ctx.tick()
        ctx.set(dut.commit, 1)  # without a segment
        ctx.set(dut.i.valid, 0)
        await ctx.tick()
        ctx.set(dut.commit, 0)
        await ctx.tick().until(dut.o.valid)
        assert ctx.get(dut.i.ready)

    simulate(dut, feed)


@pytest.mark.parametrize("depth", [1, True, 2.0])
def test_depth_is_checked(depth):
    with pytest.raises(ValueError, match="depth must be an integer of at least 2"):
        SegmentStore(depth)
