"""Partial receiver against a plain-Python model of packets that numpy packed."""

import random
from collections import Counter, deque

import numpy as np
import pytest

from rtl.config import beats_of, packing_of, preset
from rtl.formats import Opcode
from rtl.gradient import PartialBuffer, PartialReceiver
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table, descriptor_writer
from tests.rtl.gradient.partials import GLOBAL, LOCAL, Reading, random_partials
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, receiver, send_at_once, simulate

NODE, NODES, STEP = 2, 6, 0xFFFF
CONFIG = preset("tiny").with_fields(
    nodes=NODES, partial_beats=64, host_payload_beats=22, gradient_beats=64, tables=16)
SHARE = 10
TABLES = {
    0: Table(rows=50, owner=2), 1: Table(rows=1 << 33, owner=3), 2: Table(kind=ROW, owners=6),
    3: Table(kind=REPLICATED), 4: Table(kind=COLUMN), 5: Table(valid=0), 6: Table(owner=6),
    8: Table(owner=2),
}
OWN = [0, 8]
ALL = [0, 0, 0, 8, 8, 1, 2, 3, 4, 5, 6, 7, 4095]


def own(rng):
    return int(rng.choice(OWN)), int(rng.integers(50))


def anything(rng):
    return int(rng.choice(ALL)), int(rng.choice([rng.integers(50), 50, 1 << 33, (1 << 36) - 1]))


class Run:
    """Packets through a receiver; each source obeys its credits unless it has none."""

    def __init__(self, packets, dimension, *, framing="ethernet", stalls=(0.0, 0.0), hold=0,
                 lost=(), config=CONFIG):
        self.reading = Reading(TABLES, NODE, NODES, STEP if framing == "ethernet" else None,
                               dimension)
        for n, given in enumerate(packets):
            if n not in lost:
                self.reading.read(given)
        self.dut, self.framing, self.config = PartialReceiver(config, framing), framing, config
        self.packets, self.lost, self.stalls = packets, set(lost), stalls
        self.dimension, self.hold = dimension, hold
        self.out, self.arrived, self.freed, self.counters = [], [], [], {}
        self.given_at, self.taken_at, self.cycle, self.rng = [], [], 0, random.Random(3)
        self.arrived_at, self.gone = [], []
        simulate(
            powered_up(self.dut),
            descriptor_writer(self.dut, TABLES, NODE, NODES, then=self.feed), self.take,
            background=[self.watch], limit=4_000)

    async def take(self, ctx):
        await ctx.tick().until(self.dut.write_ready)
        await ctx.tick().repeat(self.hold + 1)
        await receiver(self.dut.o, self.out, len(self.reading.out), stall=self.stalls[1])(ctx)

    def may_send(self, number, given, sent):
        if self.lost:
            return True
        beats = len(given.beats())
        here = sent[given.source] - sum(b for s, b in self.freed if s == given.source)
        most = SHARE if self.framing == "ethernet" else self.config.gradient_beats
        return here + beats <= most

    async def feed(self, ctx):
        dut, sent = self.dut, Counter()
        if self.framing == "ethernet":
            for name, value in (("share", SHARE), ("open_step", STEP), ("open", 1)):
                ctx.set(getattr(dut, name), value)
        ctx.set(dut.vector_beats, beats_of(self.dimension))
        ctx.set(dut.vector_packing, packing_of(self.dimension))
        await ctx.tick().repeat(2)
        for number, given in enumerate(self.packets):
            while not self.may_send(number, given, sent):
                await ctx.tick()
            sent[given.source] += len(given.beats())
            for beat in given.beats():
                while self.rng.random() < self.stalls[0]:
                    await ctx.tick()
                await send_at_once(ctx, dut.i, beat)
        await ctx.tick().until(dut.idle)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.pending)
        # The host gets the credit of dropped packets back.
        dropped = [self.packets[n] for n in self.lost] if self.framing == "host" else []
        assert ctx.get(dut.consumed) == sum(beats for _, beats in self.reading.freed) + sum(
            len(given.beats()) for given in dropped)
        self.counters = counts_of(ctx, dut.counters)

    async def watch(self, ctx):
        dut = self.dut
        async for _, _, given, valid, ready, arrived, freed, pending, idle in ctx.tick().sample(
                dut.i.valid, dut.o.valid, dut.o.ready, dut.arrived, dut.freed, dut.pending,
                dut.idle):
            self.cycle += 1
            assert pending or not valid
            here = len(self.given_at) > sum(beats for _, beats in self.freed)
            assert not idle or not (pending or arrived.valid or freed.valid)
            assert not idle or not here or self.lost
            if given:
                self.given_at.append(self.cycle)
            if valid and ready:
                self.taken_at.append(self.cycle)
            if self.framing == "host" and ctx.get(dut.lost.valid):
                self.gone.append((ctx.get(dut.lost.level), ctx.get(dut.lost.step)))
            if arrived.valid:
                self.arrived.append((arrived.source, arrived.step))
                self.arrived_at.append(self.cycle)
            if freed.valid:
                self.freed.append((freed.node, freed.beats))

    def check(self):
        assert self.out == self.reading.out
        assert self.arrived == self.reading.arrived
        assert self.freed == self.reading.freed
        assert (self.counters["stall_sink"] == 0) <= (self.stalls[1] == 0) or self.hold
        assert self.counters == self.counters | self.reading.counts | {
            "over_credit": len(self.lost)}
        return self


@pytest.mark.few(3)
@pytest.mark.parametrize("dimension, stalls", [
    (4, (0.0, 0.0)), (8, (0.3, 0.3)), (16, (0.0, 0.4)), (16, (0.5, 0.0)), (64, (0.2, 0.2))])
def test_partials_leave_one_by_one(dimension, stalls):
    rng = np.random.default_rng(dimension)
    packets = [random_partials(rng, dimension, SHARE, own if n % 3 else anything,
                               source=int(rng.choice([0, 1, 3, 4, 5])), step=STEP,
                               level=n % 2)
               for n in range(40)]
    for n, step in enumerate(a_bit_apart(STEP)):
        packets[2 * n + 3].step = step
    run = Run(packets, dimension, stalls=stalls).check()
    assert all(run.counters[name] for name in (
        "partials", "bad_step", "bad_table", "bad_row", "bad_owner"))


def test_beats_beyond_the_vector_are_dropped():
    rng = np.random.default_rng(4)
    for dimension in (16, 48):
        packets = [random_partials(rng, dimension, SHARE, own, count=5, source=1, step=STEP)
                   for _ in range(2)]
        for n, beat in enumerate((beats_of(dimension), beats_of(dimension) - 1, 15, 0)):
            packets[0].keys[n] = (0, 1, beat)
        packets[1].keys[4] = (4095, 1, beats_of(dimension))
        assert Run(packets, dimension).check().counters["bad_beat"] == 3


@pytest.mark.few(2)
@pytest.mark.parametrize("dimension, counts", [
    (4, [3, 5, 32, 1, 9]), (8, [8, 1, 16, 15]), (16, [8, 16, 7, 1])])
def test_a_partial_leaves_each_cycle(dimension, counts):
    """Once they are here; and they all come without a gap."""
    rng = np.random.default_rng(1)
    packets = [random_partials(rng, dimension, 20, own, count=count, source=n % 2, step=STEP)
               for n, count in enumerate(counts)]
    config = CONFIG.with_fields(gradient_beats=256, partial_beats=256)
    run = Run(packets, dimension, framing="host", hold=100, config=config).check()
    assert run.taken_at[-1] - run.taken_at[0] + 1 == sum(counts)
    assert run.given_at[-1] - run.given_at[0] + 1 == len(run.given_at)
    assert run.arrived_at == [at + 1 for at in run.taken_at]


@pytest.mark.parametrize("dimension, count", [(16, 1), (16, 9), (4, 4), (4, 56)])
def test_latency_is_as_documented(dimension, count):
    given = random_partials(np.random.default_rng(2), dimension, 22, own, count)
    run = Run([given], dimension, framing="host").check()
    assert run.taken_at[0] - run.given_at[0] == max(11, -(-count // 8) + 5)


def test_what_is_sent_without_a_credit_is_lost_whole():
    """Nothing leaves: each source has its share here, to the beat, and all of them the depth."""
    rng = np.random.default_rng(7)

    def packet(source, beats):
        return random_partials(rng, 16, beats, own, count=beats - 1, source=source, step=STEP)

    order = [(0, 8), (1, 3), (0, 3), (0, 2), (0, 2), (3, 7), (3, 3), (4, 8), (5, 6), (5, 4), (4, 2),
             (1, 7), (1, 2), (2, 8), (2, 2), (2, 2)]
    share, lost = Counter(), []
    for n, (source, beats) in enumerate(order):
        if share[source] + beats > SHARE:
            lost.append(n)
        else:
            share[source] += beats
    run = Run([packet(*item) for item in order], 16, hold=200, lost=lost)
    run.check()
    assert set(share.values()) == {SHARE} and len(lost) == 4


def test_no_more_than_the_depth_is_let_in():
    config = CONFIG.with_fields(gradient_beats=64)
    rng = np.random.default_rng(7)
    packets = [random_partials(rng, 4, 22, own, count=count, source=200, step=n, level=LOCAL,
                               opcode=Opcode.RETURNED)
               for n, count in enumerate((56, 56, 50, 12, 3, 2, 1))]  # 21, 21, 20, 5, 2, 2, 2 beats
    run = Run(packets, 4, framing="host", hold=300, lost=(3, 5, 6), config=config)
    run.check()


@pytest.mark.parametrize("dimension, stalls", [(8, (0.0, 0.3)), (32, (0.3, 0.0))])
def test_what_the_host_returns(dimension, stalls):
    """Of either level, of any step: for the local reduction whoever owns the row."""
    rng = np.random.default_rng(dimension)
    packets = [random_partials(rng, dimension, 22, anything, source=NODE, step=n,
                               level=int(rng.choice([LOCAL, GLOBAL])), opcode=Opcode.RETURNED)
               for n in range(12)]
    run = Run(packets, dimension, framing="host", stalls=stalls).check()
    assert {item["level"] for item in run.out} == {LOCAL, GLOBAL}
    assert run.counters["bad_owner"]
    # Each dropped beat is reported with its reduction and step.
    assert len(run.gone) == sum(
        count for name, count in run.counters.items() if name.startswith("bad"))
    given = {(int(levels), step) for levels, step in (
        (item["level"], item["beat"]["step"]) for item in run.out)}
    assert {step for _, step in run.gone} <= set(range(12)) and set(run.gone) & given


def test_nothing_is_taken_while_no_step_is_open():
    """What was offered before stays until it is taken; the rest is dropped, its room is free, and
    nobody waits for it."""
    dut = made(PartialReceiver, CONFIG)
    rng = np.random.default_rng(3)
    packets = deque(random_partials(rng, 16, 5, own, count=4, source=1, step=STEP)
                    for _ in range(3))
    reading, seen = Reading(TABLES, NODE, NODES, STEP, 16), []
    reading.read(packets[0])

    async def send(ctx):
        for beat in packets.popleft().beats():
            ctx.set(dut.i.payload, beat)
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(20)

    async def feed(ctx):
        for name, value in (("share", SHARE), ("open_step", STEP), ("open", 1),
                            ("vector_beats", 1)):
            ctx.set(getattr(dut, name), value)
        await send(ctx)
        # Two have been checked and wait, the others have not.
        assert ctx.get(dut.o.valid) and ctx.get(dut.pending)
        ctx.set(dut.open, 0)
        await ctx.tick().repeat(3)
        await receiver(dut.o, seen, 2, stall=0.5)(ctx)
        await ctx.tick().until(dut.idle)
        assert not ctx.get(dut.pending) and ctx.get(dut.counters.bad_step) == 2
        ctx.set(dut.o.ready, 1)
        await send(ctx)
        assert ctx.get(dut.idle) and ctx.get(dut.counters.bad_step) == 6
        ctx.set(dut.open, 1)
        ctx.set(dut.open_step, STEP - 1)
        await send(ctx)
        assert ctx.get(dut.counters.bad_step) == 10 and ctx.get(dut.counters.partials) == 2
        assert ctx.get(dut.consumed) == 15

    async def watch(ctx):
        async for _, _, valid, pending in ctx.tick().sample(dut.o.valid, dut.pending):
            assert pending == valid

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             background=[watch], limit=1_000)
    assert seen == reading.out[:2]


@pytest.mark.parametrize("apart", [1, 1024])
@pytest.mark.parametrize("late", [0, 1])
def test_what_waits_is_of_the_step_that_is_open_when_it_leaves(apart, late):
    """Partials of two steps wait behind the output, while the second step opens: of the second
    step, and ``late`` of the first one in front of it, else behind it."""
    dut, after = made(PartialReceiver, CONFIG), (STEP + apart) & 0xFFFF
    rng, seen = np.random.default_rng(5), []
    packets = [random_partials(rng, 16, 5, own, count=count, source=1, step=step)
               for count, step in ((2 + late, STEP), (1, after), (2 - late, STEP))]
    readings = [Reading(TABLES, NODE, NODES, step, 16) for step in (STEP, after)]
    readings[0].read(packets[0])
    readings[1].read(packets[1])
    taken = readings[0].out[:2] + readings[1].out

    async def feed(ctx):
        for name, value in (("share", SHARE), ("open_step", STEP), ("open", 1),
                            ("vector_beats", 1)):
            ctx.set(getattr(dut, name), value)
        for packet in packets:
            for beat in packet.beats():
                await send_at_once(ctx, dut.i, beat)
        await ctx.tick().repeat(20)
        ctx.set(dut.open, 0)
        await ctx.tick().repeat(3)
        for name, value in (("open_step", after), ("open", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(2)
        await receiver(dut.o, seen, 3, stall=0.5)(ctx)
        await ctx.tick().until(dut.idle)
        assert ctx.get(dut.counters.bad_step) == 2

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, then=feed), limit=1_000)
    assert seen == taken


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig"):
        PartialReceiver("tiny")
    with pytest.raises(ValueError, match="framing must be ethernet, udp or host"):
        PartialReceiver(CONFIG, "pcie")
    with pytest.raises(ValueError, match="sources must be between 1 and 256, not 0"):
        PartialBuffer(0, 64)
    with pytest.raises(ValueError, match="depth must be between 4 and 32768, not 3"):
        PartialBuffer(1, 3)
    with pytest.raises(TypeError, match=r"depth must be an integer, not 8\.0$"):
        PartialBuffer(1, 8.0)
