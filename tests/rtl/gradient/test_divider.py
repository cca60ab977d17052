"""Gradient divider: the vectors of valid packets, each divided by its bag's length for a mean."""

import random

import pytest
from amaranth.hdl import unsigned

from rtl.config import LANES, beats_of, packing_of
from rtl.gradient.divider import GradientDivider
from tests.rtl.gradient.packets import mean, values
from tests.support import made, quiet_while_idle, send_at_once, sender, simulate

FIRST, FIRST_OF_MEAN = (GradientDivider.LATENCY["number of keys of a bag", name] for name in (
    "its first beat", "its first beat, of a mean"))


class Divided:
    """Packets of bags, some to be dropped, through a divider."""

    def __init__(self, dimension: int, divides: bool, seed: int, *, packets: int = 20,
                 drop: float = 0.3, most: int = 7):
        rng = self.rng = random.Random(seed)
        self.dimension, self.divides = dimension, divides
        self.vectors, self.verdicts, self.bags, self.wanted, self.begins = [], [], [], [], []
        for _ in range(packets):
            dropped, lanes = rng.random() < drop, []
            count = rng.randrange(1, most)
            for bag in range(count):
                vector, keys = values(dimension, rng), rng.choice([1, 2, 3, 7, 200, 255])
                lanes += vector
                if not dropped:
                    self.bags.append({"item": keys, "last": int(bag == count - 1)})
                    self.want(mean(vector, keys) if divides else vector)
            beats = self.beats(lanes)
            self.vectors += [{"data": beat, "last": int(n == len(beats) - 1)}
                             for n, beat in enumerate(beats)]
            self.verdicts.append(int(dropped))
        self.out: list[int] = []

    @staticmethod
    def beats(lanes: list[int]) -> list[int]:
        return [sum(v << 32 * k for k, v in enumerate(lanes[at:at + LANES]))
                for at in range(0, len(lanes), LANES)]

    def want(self, vector: list[int]) -> None:
        beats = self.beats(vector)
        self.wanted += beats
        self.begins += [n == 0 for n in range(len(beats))]

    def run(self, *, stalls=(0.0, 0.0, 0.0), hold: float = 0.0) -> int:
        """Return the number of cycles.

        stalls: stalls of vectors, verdicts and bags.
        hold: share of cycles in which no beat may start.
        """
        dut, rng = made(GradientDivider, unsigned(8)), random.Random(1)
        begun: list[int] = []

        async def pace(ctx):
            ctx.set(dut.vector_beats, beats_of(self.dimension))
            ctx.set(dut.vector_packing, packing_of(self.dimension))
            ctx.set(dut.mean, int(self.divides))
            while len(self.out) < len(self.wanted):
                goes = int(rng.random() >= hold)
                ctx.set(dut.go, goes)
                _, _, begins, first, out = await ctx.tick().sample(
                    dut.begun, dut.bag_begun, dut.o)
                assert goes or not begins, "a beat starts only when it may"
                assert begins or not first
                if begins:
                    begun.append(first)
                if out.valid:
                    self.out.append(out.data)
            await ctx.tick().until(dut.idle)
            for _ in range(2 * FIRST_OF_MEAN):  # a surplus beat would leave in these cycles
                ctx.set(dut.go, 1)
                await ctx.tick()
                assert not ctx.get(dut.o.valid)

        def after(bench):
            async def wait(ctx):
                await ctx.tick().repeat(3)  # the settings are stable
                await bench(ctx)
            return wait

        feeds = [sender(port, items, stall=stall, seed=number) for number, (port, items, stall) in
                 enumerate(zip((dut.vectors, dut.verdicts, dut.bags),
                               (self.vectors, self.verdicts, self.bags), stalls, strict=True))]
        cycles = simulate(dut, pace, *map(after, feeds), limit=20_000, background=[
            quiet_while_idle(dut.idle, [dut.vectors.valid, dut.verdicts.valid, dut.bags.valid],
                             [dut.begun, dut.o.valid])])
        assert self.out == self.wanted
        assert [bool(first) for first in begun] == self.begins
        return cycles


@pytest.mark.parametrize("dimension, divides, stalls, hold", [
    (4, True, (0.0, 0.0, 0.0), 0.0), (4, False, (0.0, 0.0, 0.0), 0.2),
    (8, True, (0.3, 0.2, 0.3), 0.3), (16, False, (0.0, 0.9, 0.0), 0.0),
    (64, True, (0.0, 0.0, 0.6), 0.5), (48, True, (0.6, 0.0, 0.0), 0.0)])
def test_each_bag_gets_its_vector(dimension, divides, stalls, hold):
    Divided(dimension, divides, seed=dimension).run(stalls=stalls, hold=hold)


@pytest.mark.parametrize("dimension", [4, 32])
def test_a_beat_a_cycle_dropped_ones_included(dimension):
    given = Divided(dimension, True, seed=9, packets=40, most=9)
    dropped, at = 0, 0
    for verdict in given.verdicts:
        size = next(n for n, beat in enumerate(given.vectors[at:], 1) if beat["last"])
        dropped, at = dropped + size * verdict, at + size
    cycles = given.run()
    ends = 2 * FIRST_OF_MEAN + 3 + FIRST_OF_MEAN + 5
    assert cycles <= len(given.wanted) + dropped + ends


@pytest.mark.parametrize("divides, latency", [(False, FIRST), (True, FIRST_OF_MEAN)])
def test_latency(divides, latency):
    """From the number of keys to the beat, when all else is there."""
    dut, seen = made(GradientDivider, unsigned(8)), []
    (beat,) = Divided.beats(values(16, random.Random(4)))

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.mean, int(divides))
        ctx.set(dut.go, 1)
        for port, item in ((dut.vectors, {"data": beat, "last": 1}), (dut.verdicts, 0)):
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.bags.payload, {"item": 3, "last": 1})
        ctx.set(dut.bags.valid, 1)
        for cycle in range(latency + 20):
            if ctx.get(dut.begun):
                assert ctx.get(dut.vectors.ready) and ctx.get(dut.verdicts.ready)
            if ctx.get(dut.o.valid):
                seen.append(cycle)
            await ctx.tick()
            ctx.set(dut.bags.valid, 0)

    simulate(dut, bench)
    assert seen == [latency]


def test_not_idle_while_a_bag_waits_for_its_vector():
    dut = made(GradientDivider, unsigned(8))

    async def bench(ctx):
        await send_at_once(ctx, dut.bags, {"item": 3, "last": 1})
        for _ in range(2 * FIRST):
            assert not ctx.get(dut.idle)
            await ctx.tick()

    simulate(dut, bench)
