"""PartialBuffer: packets enter whole or not at all, by the room of all senders and of each."""

import random

import pytest

from rtl.gradient import PartialBuffer
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, send_at_once, simulate

DEPTH, SHARE = 32, 12


def packet(count: int, source: int, rng: random.Random) -> tuple[list[dict], list[dict], list[int]]:
    """Return the beats of a packet of ``count`` records and values, its items, and its values."""
    step, words = rng.getrandbits(16), [rng.getrandbits(64) for _ in range(count)]
    values = [rng.getrandbits(512) for _ in range(count)]
    parts = [words[at:at + 8] for at in range(0, count, 8)]
    beats = len(parts) + count
    raw = [(sum(word << 64 * k for k, word in enumerate(part)), len(part)) for part in parts]
    raw += [(value, 0) for value in values]
    given = [{"beat": {"data": data, "records": records, "source": source, "step": step,
                       "last": int(n == beats - 1)}, "count": max(0, count - 8 * n)}
             for n, (data, records) in enumerate(raw)]
    items = [{"record": word, "source": source, "step": step, "beats": beats,
              "last": int(n == count - 1)} for n, word in enumerate(words)]
    return given, items, values


class World:
    """Senders with and without regard to their credits; the model decides which packets enter."""

    def __init__(self, sources: int, honest: float, stall: float):
        rng = self.rng = random.Random(sources)
        self.dut, self.stall = made(PartialBuffer, sources, DEPTH), stall
        self.inside, self.items, self.values = [0] * sources, [], []
        self.out, self.raw, self.left, self.refused = [], [], [], 0
        self.packets, self.want = [], {"packets": 0, "beats": 0, "over_credit": 0}
        for _ in range(60):
            source = rng.randrange(sources)
            self.packets.append((source, packet(rng.choice([1, 2, 8, 9, 10]), source, rng)))
        self.honest = honest
        simulate(powered_up(self.dut), self.feed, limit=6_000, background=[
            self.free, self.watch,
            receiver(self.dut.items, self.out, 1 << 30, stall=stall),
            receiver(self.dut.values, self.raw, 1 << 30, stall=stall, seed=4)])

    def fits(self, source: int, beats: int) -> bool:
        share = SHARE if len(self.inside) > 1 else DEPTH
        return (self.inside[source] + beats <= share and sum(self.inside) + beats <= DEPTH)

    async def feed(self, ctx):
        dut = self.dut
        if hasattr(dut, "share"):
            ctx.set(dut.share, SHARE)
        await ctx.tick().until(dut.i.ready)
        for source, (beats, items, values) in self.packets:
            honest = self.rng.random() < self.honest
            while honest and not self.fits(source, len(beats)):
                await ctx.tick()
            # The admission of a packet without credit is only predictable while no beat is freed.
            self.frozen = not honest
            for _ in range(2 * self.frozen):
                await ctx.tick()
            admitted = self.fits(source, len(beats))
            if admitted:
                self.inside[source] += len(beats)
                self.items += items
                self.values += values
                self.left.append((source, len(beats)))
                self.want["packets"] += 1
                self.want["beats"] += len(beats)
            else:
                self.want["over_credit"] += 1
                self.refused += len(beats)
            for beat in beats:
                while self.rng.random() < self.stall:
                    await ctx.tick()
                await send_at_once(ctx, dut.i, beat)
            for _ in range(4 * self.frozen):
                await ctx.tick()
            self.frozen = False
        while len(self.out) < len(self.items) or len(self.raw) < len(self.values):
            await ctx.tick()
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle)
        assert {name: ctx.get(dut.counters[name]) for name in self.want} == self.want

    frozen = False

    async def free(self, ctx):
        """Free the beats of packets whose values have left, one packet per cycle."""
        dut, gone = self.dut, 0
        while True:
            ctx.set(dut.freed.valid, 0)
            values = len(self.raw)
            if self.left and not self.frozen:
                source, beats = self.left[0]
                count = next(n for n in range(1, beats) if n + -(-n // 8) == beats)
                if values - gone >= count:
                    gone += count
                    self.left.pop(0)
                    ctx.set(dut.freed, {"valid": 1, "node": source, "beats": beats})
                    await ctx.tick()
                    ctx.set(dut.freed.valid, 0)
                    self.inside[source] -= beats
            await ctx.tick()

    async def watch(self, ctx):
        async for _, _, refused in ctx.tick().sample(self.dut.refused):
            self.refused -= refused


@pytest.mark.parametrize("sources, honest, stall", [
    (4, 1.0, 0.0), (4, 0.5, 0.3), (1, 0.5, 0.0), (1, 1.0, 0.4)])
def test_packets_whole_or_not_at_all(sources, honest, stall):
    world = World(sources, honest, stall)
    assert world.out == world.items and world.raw == world.values
    assert world.refused == 0
    assert bool(world.want["over_credit"]) == (honest < 1)
