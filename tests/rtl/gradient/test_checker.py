"""Gradient check: valid packets pass whole, each invalid one gets one message, under any stalls."""

import random
from dataclasses import dataclass, field

import pytest

from rtl.config import beats_of, packing_of, preset
from rtl.formats import Status
from rtl.gradient.checker import GradientCheck
from tests.rtl.descriptors import descriptor_writer
from tests.rtl.gradient.faults import NODE, NODES, STEP, TABLES, bad_packets, end, good
from tests.rtl.gradient.packets import EMPTY, KEY_END, Packet, Reading
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, quiet_while_idle, receiver, sender, simulate

CONFIG = preset("tiny")
LATENCY = GradientCheck.LATENCY["last record of a packet", "its first key"]


def items_of(given: Packet, dimension: int, rng: random.Random, lost: bool = False) -> list[dict]:
    """Return the unpacker's items of a packet; of a ``lost`` packet, the last one."""
    beats = given.beats(dimension, rng)
    words = [beat["data"] >> 64 * k & (1 << 64) - 1
             for beat in beats for k in range(beat["records"])]
    common = {"step": given.step, "bare": 0, "lost": int(lost),
              "beats": sum(not beat["records"] for beat in beats)}
    if lost or not words:
        return [common | {"record": rng.getrandbits(64), "bare": 1, "last": 1}
                | ({"beats": 0} if lost else {})]
    return [common | {"record": word, "last": int(n == len(words) - 1)}
            for n, word in enumerate(words)]


@dataclass
class Checked:
    """Expected results of packets in a check."""

    dimension: int
    items: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    bags: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    good: int = 0

    def __post_init__(self):
        self.reading = Reading(TABLES, NODE, NODES, STEP, self.dimension, False)
        self.rng = random.Random(self.dimension)

    def add(self, given: Packet, lost: bool = False) -> None:
        items = items_of(given, self.dimension, self.rng, lost)
        self.items += items
        status = Status.CREDIT if lost else self.reading.judge(given)
        if items[0]["beats"]:
            self.verdicts.append(int(bool(status)))
        if status:
            self.refused.append({"status": status, "step": given.step})
            return
        self.good += 1
        self.reading.read(given)
        length = 0
        for n, (table, row, kind) in enumerate(given.records):
            last, over = int(n == len(given.records) - 1), kind == EMPTY
            key = {} if over else {"key": {"table": table, "row": row}}
            self.keys.append((key | {"step": given.step, "end": int(kind == KEY_END),
                                     "over": int(over)}, last))
            length += 1
            if kind == KEY_END:
                self.bags.append((length, last))
                length = 0


def check(given: Checked, *, idle=0.0, stalls=(0.0, 0.0, 0.0, 0.0)) -> None:
    dut, counters = made(GradientCheck, CONFIG), {}
    outputs = {"keys": given.keys, "bags": given.bags, "verdicts": given.verdicts,
               "refused": given.refused}
    taken: dict[str, list] = {name: [] for name in outputs}

    async def feed(ctx):
        ctx.set(dut.step, STEP)
        ctx.set(dut.vector_beats, beats_of(given.dimension))
        ctx.set(dut.vector_packing, packing_of(given.dimension))
        await ctx.tick().repeat(2)
        await sender(dut.i, given.items, stall=idle, seed=5)(ctx)
        await ctx.tick().until(dut.idle)
        counters.update(counts_of(ctx, dut.counters))
        await ctx.tick().repeat(20)  # surplus items would leave in these cycles

    ends = [receiver(getattr(dut, name), taken[name], 1 << 30, stall=stall, seed=seed)
            for seed, (name, stall) in enumerate(zip(outputs, stalls, strict=True))]
    moves = [getattr(dut, name).valid for name in outputs]
    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             background=[*ends, quiet_while_idle(
                 dut.idle, [dut.i.valid, dut.write_en], moves)], limit=20_000)
    assert [({name: value for name, value in key["item"].items()
              if name != "key" or not key["item"]["over"]}, key["last"])
            for key in taken["keys"]] == given.keys
    assert [(bag["item"], bag["last"]) for bag in taken["bags"]] == given.bags
    assert taken["verdicts"] == given.verdicts
    assert taken["refused"] == given.refused
    assert counters == counters | {"packets": given.good, "dropped": len(given.refused)}


@pytest.mark.parametrize("dimension, idle, stalls", [
    (4, 0.0, (0.0, 0.0, 0.0, 0.0)), (8, 0.3, (0.3, 0.1, 0.2, 0.3)),
    (16, 0.0, (0.1, 0.8, 0.1, 0.1)), (64, 0.0, (0.2, 0.0, 0.95, 0.0)),
    (64, 0.0, (0.8, 0.0, 0.0, 0.97))])
def test_good_packets_pass_and_bad_ones_are_answered(dimension, idle, stalls):
    rng, given = random.Random(dimension), Checked(dimension)
    packets = [packet for packet, _ in bad_packets(dimension, rng)]
    packets += [good([rng.randrange(1, 9) for _ in range(rng.randrange(1, 6))], dimension, rng)
                for _ in range(25)]
    rng.shuffle(packets)
    for n, packet in enumerate(packets):
        given.add(packet)
        if n % 9 == 4:
            given.add(good([1, 2], dimension, rng), lost=True)
    given.add(end())
    given.add(good([2], dimension, rng))  # too late
    assert given.good > 10 and len({refused["status"] for refused in given.refused}) == 7
    check(given, idle=idle, stalls=stalls)


def test_every_status_comes_as_it_should():
    """Those that the generator names, not only those of the reading that it is compared with."""
    for dimension in (4, 64):
        for packet, status in bad_packets(dimension, random.Random(1)):
            assert Reading(TABLES, NODE, NODES, STEP, dimension, False).judge(packet) == status


def test_a_record_a_cycle_and_latency():
    dut, rng = made(GradientCheck, CONFIG), random.Random(3)
    items = [item for lengths in ([3, 1, 2], [1], [8], [1], [5, 1])
             for item in items_of(good(lengths, 16, rng), 16, rng)]
    lasts = [n for n, item in enumerate(items) if item["last"]]
    seen = []

    async def feed(ctx):
        ctx.set(dut.step, STEP)
        ctx.set(dut.vector_beats, 1)
        for name in ("keys", "bags", "verdicts", "refused"):
            ctx.set(getattr(dut, name).ready, 1)
        await ctx.tick().repeat(2)
        for cycle in range(len(items) + 4 * LATENCY):
            ctx.set(dut.i.valid, int(cycle < len(items)))
            if cycle < len(items):
                ctx.set(dut.i.payload, items[cycle])
                assert ctx.get(dut.i.ready)
            if ctx.get(dut.keys.valid):
                seen.append(cycle)
            await ctx.tick()

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, then=feed))
    assert len(seen) == len(items) and seen[0] == lasts[0] + LATENCY
    # Then one key per cycle, except those of an unfinished packet.
    expected, first = [], 0
    for last in lasts:
        for _ in range(first, last + 1):
            expected.append(max(last + LATENCY, expected[-1] + 1 if expected else 0))
        first = last + 1
    assert seen == expected
