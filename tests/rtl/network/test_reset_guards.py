"""Guards against resets in the middle of packets: whole packets leave, and whole packets enter."""

import random

import pytest

from rtl.network.reset_guards import HeadGuard, TailGuard
from tests.support import made, simulate

ONES = (1 << 512) - 1
CYCLES = 700


def random_packets(rng, count=400):
    """Yield packets as lists of data words; no word is all ones."""
    for number in range(count):
        yield [number << 16 | k for k in range(rng.choice((1, 1, 2, 3, 3, 5, 9)))]


def resets(dut, rng):
    """Return a background testbench that raises ``hold`` at random, for 2 cycles or more."""
    async def bench(ctx):
        while True:
            await ctx.tick().repeat(rng.randint(1, 30))
            ctx.set(dut.hold, 1)
            await ctx.tick().repeat(rng.choice((2, 2, 3, 9)))
            ctx.set(dut.hold, 0)

    return bench


def stalled(port, rng, stall):
    """Return a background testbench that makes ``port`` ready at random."""
    async def bench(ctx):
        while True:
            ctx.set(port.ready, rng.random() >= stall)
            await ctx.tick()

    return bench


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_every_packet_has_its_length_and_its_end(stall):
    rng, dut = random.Random(stall), made(TailGuard)
    handed, taken, sizes = [], [], []

    async def source(ctx):
        """Begin a new packet after each reset, as blocks that were reset do."""
        for packet in random_packets(random.Random(1)):
            handed.append(([], len(packet)))
            for k, word in enumerate(packet):
                while rng.random() < stall / 2 and not ctx.get(dut.hold):
                    await ctx.tick()
                ctx.set(dut.i.payload, {"data": word, "keep": -1, "last": k == len(packet) - 1})
                ctx.set(dut.i_bytes, 64 * len(packet))
                ctx.set(dut.i.valid, 1)
                hold = moves = 0
                while not (hold or moves):
                    _, _, hold, moves = await ctx.tick().sample(
                        dut.hold, dut.i.valid & dut.i.ready)
                ctx.set(dut.i.valid, 0)
                if hold:
                    assert not moves, "nothing is taken from blocks in reset"
                    break
                handed[-1][0].append(word)

    async def sink(ctx):
        beats, size = [], None
        async for _, _, moves, beat, length, idle in ctx.tick().sample(
                dut.o.valid & dut.o.ready, dut.o.payload, dut.o_bytes, dut.idle):
            if not moves:
                continue
            assert size in (None, length), "the length of a packet changes"
            assert beat.keep == (1 << 64) - 1 and not beat.err
            assert (beat.data == ONES) == (not idle)
            beats.append(beat.data)
            size = length
            if beat.last:
                taken.append(beats)
                sizes.append(length)
                beats, size = [], None

    async def run(ctx):
        await ctx.tick().repeat(CYCLES)

    simulate(dut, run, background=[source, sink, resets(dut, rng), stalled(dut.o, rng, stall)],
             limit=CYCLES + 10)
    begun = [entry for entry in handed if entry[0]][:len(taken)]
    assert taken == [words + [ONES] * (length - len(words)) for words, length in begun]
    assert sizes == [64 * length for _, length in begun]
    assert sum(ONES in packet for packet in taken) > 5 and len(taken) > 40


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_the_rest_of_a_packet_is_dropped_and_the_next_one_passes(stall):
    rng, dut = random.Random(stall), made(HeadGuard)
    passed, expected, cuts = [], [], []

    async def source(ctx):
        """Wait while the blocks are in reset, and then continue."""
        for packet in random_packets(random.Random(2)):
            for k, word in enumerate(packet):
                while rng.random() < stall / 2:
                    await ctx.tick()
                ctx.set(dut.i.payload, {"data": word, "keep": -1, "last": k == len(packet) - 1})
                ctx.set(dut.i.valid, 1)
                hold, = await ctx.tick().sample(dut.hold).until(dut.i.ready)
                assert not hold, "nothing is taken in reset"
                ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        """Model independently which beats must pass: those of packets without a reset, and those
        before the reset."""
        inside = cut = False
        async for _, _, hold, comes, beat, goes, out, told in ctx.tick().sample(
                dut.hold, dut.i.valid & dut.i.ready, dut.i.payload, dut.o.valid & dut.o.ready,
                dut.o.payload, dut.cut):
            cut |= bool(hold) and inside
            if comes:
                if not cut:
                    expected.append(beat.data)
                cuts.append(cut and bool(beat.last))
                inside = not beat.last
                cut &= inside
            if goes:
                passed.append(out.data)
            assert bool(told) == (bool(comes) and cuts[-1])

    async def run(ctx):
        await ctx.tick().repeat(CYCLES)

    simulate(dut, run, background=[watch, source, resets(dut, rng), stalled(dut.o, rng, stall)],
             limit=CYCLES + 10)
    assert passed == expected and len(passed) > 100 and sum(cuts) > 5
