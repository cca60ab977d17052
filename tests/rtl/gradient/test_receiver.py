"""Gradient receiver against a plain-Python model of the same packets."""

import random

import pytest

from rtl.config import beats_of, packing_of, preset
from rtl.formats import Status
from rtl.gradient import GradientReceiver, GradientUnpacker
from tests.rtl.descriptors import descriptor_writer
from tests.rtl.gradient.faults import NODE, NODES, STEP, TABLES, bad_packets, end, good
from tests.rtl.gradient.packets import EMPTY, KEY, KEY_END, SAMPLE, Packet, Reading, values
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, send_at_once, simulate

CONFIG = preset("tiny")


class Run:
    """Packets through a receiver, paced by its credits."""

    def __init__(self, packets, dimension, *, mean=False, stalls=(0.0, 0.0), depth=130):
        rng = random.Random(0)
        self.reading = Reading(TABLES, NODE, NODES, STEP, dimension, mean)
        for given in packets:
            self.reading.read(given)
        self.items = [beat for given in packets for beat in given.beats(dimension, rng)]
        self.dut, self.out, self.refused = GradientReceiver(CONFIG, depth=depth), [], []
        self.counters, self.taken_at, self.rng, self.stalls = {}, [], rng, stalls
        self.dimension, self.mean, self.given_at = dimension, mean, []
        simulate(
            powered_up(self.dut),
            descriptor_writer(self.dut, TABLES, NODE, NODES, then=self.feed),
            self.take,
            receiver(self.dut.refused, self.refused, len(self.reading.refused),
                     stall=stalls[1], seed=2),
            background=[self.watch], limit=6_000)

    async def feed(self, ctx):
        dut = self.dut
        ctx.set(dut.gradient_step, STEP)
        ctx.set(dut.pooling_mean, self.mean)
        ctx.set(dut.vector_beats, beats_of(self.dimension))
        ctx.set(dut.vector_packing, packing_of(self.dimension))
        await ctx.tick().repeat(2)
        for sent, item in enumerate(self.items):
            while (sent - ctx.get(dut.consumed) >= dut.credits
                   or self.rng.random() < self.stalls[0]):
                await ctx.tick()
            await send_at_once(ctx, dut.i, item)
        await ctx.tick()
        await ctx.tick().until(dut.idle)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.consumed) == len(self.items)
        for counters in (dut.unpacker_counters, dut.check_counters, dut.expander_counters):
            self.counters |= counts_of(ctx, counters)

    async def take(self, ctx):
        """Take beats and ends of steps, each while the other is not offered."""
        dut, rng = self.dut, random.Random(1)
        while len(self.out) < len(self.reading.out):
            ready = [int(rng.random() >= self.stalls[1]) for _ in range(2)]
            ctx.set(dut.o.ready, ready[0])
            ctx.set(dut.flush.ready, ready[1])
            _, _, beat, flush, payload, step = await ctx.tick().sample(
                dut.o.valid, dut.flush.valid, dut.o.payload, dut.flush.payload)
            assert not (beat and flush)
            if beat and ready[0]:
                self.out.append({
                    "key": {"row": payload.key.row, "table": payload.key.table},
                    "beat": payload.beat, "step": payload.step, "data": payload.data})
            if flush and ready[1]:
                self.out.append(step)
        ctx.set(dut.o.ready, 0)
        ctx.set(dut.flush.ready, 0)

    async def watch(self, ctx):
        dut, cycle = self.dut, 0
        async for _, _, given, valid, ready in ctx.tick().sample(
                dut.i.valid, dut.o.valid, dut.o.ready):
            cycle += 1
            if given:
                self.given_at.append(cycle)
            if valid and ready:
                self.taken_at.append(cycle)

    def check(self):
        assert self.out == self.reading.out
        assert self.refused == self.reading.refused
        beats = len(self.reading.out) - self.reading.ended
        assert self.counters == self.counters | {
            "over_credit": 0, "packets": self.reading.packets, "dropped": len(self.reading.refused),
            "bags": self.reading.bags, "beats": beats, "keys": beats // beats_of(self.dimension)}
        assert (self.counters["stall_sink"] == 0) <= (self.stalls[1] == 0)
        return self


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("dimension, mean, stalls", [
    (4, True, (0.0, 0.3)), (8, False, (0.4, 0.0)), (8, True, (0.2, 0.2)), (16, True, (0.0, 0.0)),
    pytest.param(64, False, (0.0, 0.5), marks=pytest.mark.slow), (64, True, (0.3, 0.3))])
def test_each_key_gets_the_vector_of_its_bag(dimension, mean, stalls):
    rng = random.Random(dimension)
    packets = [good(lengths, dimension, rng) for lengths in (
        [1], [1] * 9, [100], [rng.randrange(1, 12) for _ in range(7)], [2], [8, 8], [1, 37, 1])]
    run = Run(packets, dimension, mean=mean, stalls=stalls).check()
    assert run.reading.packets == len(packets)


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("dimension, stalls", [(4, (0.0, 0.0)), (16, (0.3, 0.4)), (64, (0.0, 0.0))])
def test_bad_packets_go_whole_and_are_answered(dimension, stalls):
    rng = random.Random(dimension)
    packets, expected = [], []
    for given, status in bad_packets(dimension, rng):
        packets += [given, good(rng.choice([[1], [2, 1], [9]]), dimension, rng)]
        expected.append({"status": status, "step": given.step})
    run = Run(packets, dimension, mean=True, stalls=stalls).check()
    assert run.refused == expected and run.reading.packets == len(expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("before, stalls", [(0, (0.0, 0.0)), (1, (0.0, 0.6)), (3, (0.3, 0.3))])
def test_a_step_ends_behind_its_gradients(before, stalls):
    rng = random.Random(before)
    packets = [good([1, 5, 2], 32, rng) for _ in range(before)]
    packets += [end(STEP + 1), end()]
    # Later packets are rejected, until the next step accepts gradients.
    late = [good([2], 32, rng), end(), Packet([(9, 1, SAMPLE)], [], STEP)]
    run = Run([*packets, *late], 32, mean=True, stalls=stalls).check()
    assert run.out[-1] == STEP and len(run.refused) == 1 + len(late)
    assert {refused["status"] for refused in run.refused} == {Status.STEP}


def test_an_end_comes_alone():
    rng, key = random.Random(1), (0, 1)
    packets = [
        (Packet([(*key, EMPTY)], [values(16, rng)], STEP), Status.LENGTH),
        (Packet([(*key, EMPTY)] * 2, [], STEP), Status.KIND),
        (Packet([(*key, EMPTY), (*key, KEY_END)], [values(16, rng)], STEP), Status.KIND),
        (Packet([(*key, KEY_END), (*key, EMPTY)], [values(16, rng)], STEP), Status.KIND)]
    run = Run([*(given for given, _ in packets), good([3], 16, rng), end()], 16).check()
    assert [refused["status"] for refused in run.refused] == [status for _, status in packets]


def test_the_next_step_takes_gradients_and_ends():
    dut, refused, rng = made(GradientReceiver, CONFIG), [], random.Random(2)
    packets = [end(), good([1], 16, rng), end(STEP + 1), end(STEP + 1)]

    async def feed(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.flush.ready, 1)
        for step, (first, second) in zip((STEP, STEP + 1), (packets[:2], packets[2:]), strict=True):
            ctx.set(dut.gradient_step, step)
            for item in [beat for given in (first, second) for beat in given.beats(16, rng)]:
                ctx.set(dut.i.payload, item)
                ctx.set(dut.i.valid, 1)
                await ctx.tick()
            ctx.set(dut.i.valid, 0)
            flushed, = await ctx.tick().sample(dut.flush.payload).until(dut.flush.valid)
            assert flushed == step
            await ctx.tick().until(dut.idle)

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             receiver(dut.refused, refused, 2), limit=2_000)
    assert refused == [{"status": Status.STEP, "step": step} for step in (STEP, STEP + 1)]


@pytest.mark.few(2)
@pytest.mark.parametrize("dimension, lengths", [
    (4, [1] * 24), (16, [3, 1, 2, 2, 10, 1, 1, 4]), (16, [100, 2]), (64, [1] * 8 + [3])])
def test_a_beat_leaves_each_cycle(dimension, lengths):
    rng = random.Random(3)
    packets = [good(lengths, dimension, rng) for _ in range(5)]
    run = Run(packets, dimension, mean=True, depth=512).check()
    assert run.taken_at[-1] - run.taken_at[0] + 1 == len(run.out)


@pytest.mark.parametrize("mean, lengths, latency", [(False, [5, 4], 41), (True, [1, 20], 47)])
def test_latency_is_as_documented(mean, lengths, latency):
    run = Run([good(lengths, 16, random.Random(1))], 16, mean=mean).check()
    assert run.taken_at[0] - run.given_at[-1] == latency + sum(lengths)


def test_what_is_sent_without_a_credit_is_lost_whole_and_answered():
    dut, taken, refused = made(GradientUnpacker, CONFIG, depth=130), [], []
    rng = random.Random(4)
    # Of 64 beats: 8 of records, 56 of vectors.
    large = [good([8] * 8, 112, rng) for _ in range(4)]
    small = good([1], 16, rng)
    order = [*large, small]

    async def feed(ctx):
        for item in [beat for given in order for beat in given.beats(112, rng)]:
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)

    async def take(ctx):
        await ctx.tick().repeat(4 * 64 + 10)
        assert not ctx.get(dut.idle)
        ctx.set(dut.items.ready, 1)
        ctx.set(dut.vectors.ready, 1)
        while not ctx.get(dut.idle):
            item, valid = ctx.get(dut.items.payload), ctx.get(dut.items.valid)
            if valid:
                (refused if item.bare else taken).append((item.lost, item.last))
            await ctx.tick()
        # A dropped packet takes no room, and so no credit.
        assert ctx.get(dut.consumed) == 4 * 64 + len(small.beats(16, rng))
        assert ctx.get(dut.counters.over_credit) == 3

    simulate(dut, feed, take, limit=3_000)
    # With room for 66 beats before a packet, two of 64 beats are admitted.
    assert taken == [(0, int(n == 63)) for n in range(64)] * 2
    assert refused == [(1, 1)] * 3


def test_packets_without_a_credit_are_counted_when_no_answer_has_room():
    dut, items = made(GradientUnpacker, CONFIG, depth=130), []
    rng = random.Random(5)
    beat, = Packet([(0, 1, KEY)], [], STEP).beats(16, rng)

    async def feed(ctx):
        ctx.set(dut.i.payload, beat)
        ctx.set(dut.i.valid, 1)
        await ctx.tick().repeat(300)
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.items.ready, 1)
        while not ctx.get(dut.idle):
            if ctx.get(dut.items.valid):
                items.append(ctx.get(dut.items.payload.lost))
            await ctx.tick()
        assert ctx.get(dut.counters.over_credit) == 300 - items.count(0)
        assert ctx.get(dut.consumed) == 300

    simulate(dut, feed, limit=3_000)
    assert items == [0] * items.count(0) + [1] * items.count(1)
    assert items.count(0) >= dut.credits and 0 < items.count(1) < 300 - items.count(0)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="depth must be at least 130, not 129"):
        GradientUnpacker(CONFIG, depth=129)
    with pytest.raises(TypeError, match="depth must be an integer"):
        GradientReceiver(CONFIG, depth=True)
    with pytest.raises(TypeError, match="config must be a NicConfig"):
        GradientReceiver("tiny")
