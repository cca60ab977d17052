"""Stream blocks against a deque, under random stalls on both sides."""

import itertools
import random

import pytest
from amaranth.hdl import Shape, Value
from amaranth.lib import data

from rtl.stream import Arbiter, PacketFIFO, SkidBuffer, StreamFIFO
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4)]


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("make", [
    lambda: made(SkidBuffer, 16), lambda: made(StreamFIFO, 16, 2), lambda: made(StreamFIFO, 16, 7),
    lambda: made(StreamFIFO, 16, 80)], ids=["skid", "fifo2", "fifo7", "fifo80"])
def test_order_is_kept(make, stalls):
    dut, items, taken = make(), [random.Random(3).randrange(1 << 16) for _ in range(300)], []
    simulate(dut, sender(dut.i, items, stall=stalls[0]),
             receiver(dut.o, taken, len(items), stall=stalls[1]))
    assert taken == items


WIDE = data.StructLayout({
    "a": 5, "b": 512, "inner": data.StructLayout({"c": 7, "d": 128}), "e": 127})


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("shape,lutram", [
    (WIDE, True), (200, True), (data.StructLayout({"d": 130, "e": 1}), True), (WIDE, False)])
def test_wide_fields_go_along(shape, lutram, stalls):
    """Wide fields are stored in LUTRAM, whatever their position in the item and the contents at
    power-up."""
    rng, width, taken = random.Random(4), Shape.cast(shape).width, []
    items = [rng.getrandbits(width) for _ in range(60)]
    dut = SkidBuffer(shape, lutram=lutram)

    async def send(ctx):
        for item in items:
            while rng.random() < stalls[0]:
                await ctx.tick()
            ctx.set(Value.cast(dut.i.payload), item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def take(ctx):
        stall, offered = random.Random(5), None
        while len(taken) < len(items):
            valid, item = ctx.get(dut.o.valid), ctx.get(Value.cast(dut.o.payload))
            assert offered is None or (valid and item == offered)
            ready = stall.random() >= stalls[1]
            ctx.set(dut.o.ready, ready)
            if valid and ready:
                taken.append(item)
            offered = item if valid and not ready else None
            await ctx.tick()

    cycles = simulate(powered_up(dut, 1), send, take)
    assert taken == items
    assert any(stalls) or cycles <= 66


@pytest.mark.parametrize("make", [lambda: made(SkidBuffer, 8), lambda: made(StreamFIFO, 8, 8)])
def test_one_item_a_cycle(make):
    dut, taken = make(), []
    cycles = simulate(dut, sender(dut.i, range(200)), receiver(dut.o, taken, 200))
    assert cycles <= 206


def test_fifo_holds_its_depth():
    dut = made(StreamFIFO, 8, 5)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        accepted = 0
        for _ in range(20):
            accepted += ctx.get(dut.i.ready)
            await ctx.tick()
        assert accepted == 6  # five in the RAM, one in its output register
        assert ctx.get(dut.level) == 5 and not ctx.get(dut.idle)

    simulate(dut, bench)


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("depth", [2, 4, 5])
def test_a_fifo_is_ready_while_its_ram_is_not_full(depth, stalls):
    dut, taken, levels = made(StreamFIFO, 8, depth), [], set()

    async def watch(ctx):
        while True:
            *_, level, ready = await ctx.tick().sample(dut.level, dut.i.ready)
            assert ready == (level != depth)
            levels.add(level)

    simulate(dut, sender(dut.i, range(200), stall=stalls[0]),
             receiver(dut.o, taken, 200, stall=stalls[1]), background=[watch])
    assert taken == list(range(200)) and (depth in levels) == (stalls[1] > 0)


@pytest.mark.parametrize("depth", [1, 0, "8"])
def test_fifo_depth_is_checked(depth):
    with pytest.raises(ValueError, match="depth must be an integer of at least 2, not"):
        StreamFIFO(8, depth)


@pytest.mark.parametrize("depth", [4, 16])
@pytest.mark.parametrize("stalls", STALLS)
def test_packet_fifo_drops_whole_packets(depth, stalls):
    rng = random.Random(depth)
    packets = [(rng.randrange(1, depth + 4), rng.random() < 0.3) for _ in range(80)]
    items, expected, drops, too_long = [], [], 0, 0
    for k, (length, drop) in enumerate(packets):
        beats = [(k * 31 + j) & 0xFFFF for j in range(length)]
        items += [{"item": b, "last": int(j == length - 1), "drop": int(drop)}
                  for j, b in enumerate(beats)]
        if drop or length > depth:
            drops += 1
            too_long += length > depth
        else:
            expected += [{"item": b, "last": int(j == length - 1), "drop": 0}
                         for j, b in enumerate(beats)]
    dut, taken, dropped = made(PacketFIFO, 16, depth), [], []

    async def watch(ctx):
        async for _, _, event, overflow in ctx.tick().sample(dut.dropped, dut.overflow):
            assert event or not overflow
            if event:
                dropped.append(overflow)

    simulate(dut, sender(dut.i, items, stall=stalls[0]),
             receiver(dut.o, taken, len(expected), stall=stalls[1]), background=[watch])
    assert taken == expected
    assert 0 < too_long < drops
    assert (len(dropped), sum(dropped)) == (drops, too_long)


PACKETS = data.StructLayout({"port": 4, "packet": 8, "beat": 4, "last": 1})


def _last(payload):
    return payload.last


@pytest.mark.parametrize("priority", [False, True])
@pytest.mark.parametrize("stalls", STALLS)
def test_arbiter_keeps_packets_whole(priority, stalls):
    dut = made(Arbiter, PACKETS, 3, last=_last, priority=priority)
    rng = random.Random(5)
    sent = []
    for port in range(3):
        beats = []
        for packet in range(20):
            length = rng.randrange(1, 6)
            beats += [{"port": port, "packet": packet, "beat": j, "last": int(j == length - 1)}
                      for j in range(length)]
        sent.append(beats)
    taken: list[dict] = []
    simulate(dut, *(sender(dut.i[k], sent[k], stall=stalls[0], seed=k) for k in range(3)),
             receiver(dut.o, taken, sum(map(len, sent)), stall=stalls[1]))
    for port in range(3):
        assert [t for t in taken if t["port"] == port] == sent[port]
    for before, after in itertools.pairwise(taken):
        if not before["last"]:
            assert after["port"] == before["port"]


def test_arbiter_is_fair():
    dut = made(Arbiter, 8, 4)
    taken: list[int] = []
    simulate(dut, receiver(dut.o, taken, 100), background=[
        sender(dut.i[k], [k] * 200) for k in range(4)])
    assert all(taken[j:j + 4].count(k) == 1 for k in range(4) for j in range(4, 90, 4))
