"""Bag ring against lists of bags: every vector in its turn, after the sum that it is added to."""

import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from rtl.float import FLOAT_ADDER_LATENCY
from rtl.formats import RecordKind
from rtl.interaction.bag_ring import LOOP, BagRing, round_slots
from tests.rtl.interaction.bags import random_samples, slot_beats
from tests.rtl.interaction.test_pooling import random_sizes
from tests.rtl.power_up import powered_up
from tests.support import decoder, made, sender, simulate

LATENCY = BagRing.LATENCY["beat that ends a vector", "first beat out, if its thread's turn comes"]

SUMMED = FLOAT_ADDER_LATENCY + 2
"""Cycles from an output beat to the first beat that finds its sum: added, written, and then read.
"""


def items_of(sizes, beats, seed=0):
    return slot_beats(random_samples(seed, [sizes], beats), beats)


def ends_bag(item):
    return bool(item["beat_last"] and item["kind"] != RecordKind.KEY)


def bags_in(items):
    """Return the bags of slot beats, as lists of vectors, which are lists of beats."""
    bags: list[list[list[int]]] = []
    new_bag = new_vector = True
    for item in items:
        if new_bag:
            bags.append([])
        if new_vector:
            bags[-1].append([])
        bags[-1][-1].append(item["data"])
        new_bag, new_vector = ends_bag(item), item["beat_last"]
    return bags


@dataclass
class Ring:
    """A ring, and its events in each cycle."""

    beats: int
    most: int = 4
    depth: int = 64
    bags: int = 8
    leave: float = 1.0
    """Chance that a bag that has been read is released, in each cycle."""
    cycles: list[dict] = field(default_factory=list)
    ended: int = 0
    """Bags that have been read to their end."""

    def __post_init__(self):
        self.dut = made(BagRing, self.most, self.depth, self.bags)

    async def watch(self, ctx):
        """Record each cycle, and release the oldest bag once it has been read."""
        dut, rng, finished, oldest = self.dut, random.Random(self.depth), set(), 0
        names = ("taken", "ready", "bag", "left", "coming", "o", "data", "stall", "idle")
        decode = [decoder(port.shape()) for port in (dut.coming, dut.o)]
        async for _, _, *values in ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.i.ready, dut.bag, dut.left,
                dut.coming.as_value(), dut.o.as_value(), dut.data, dut.stall, dut.idle):
            now = dict(zip(names, values))
            now["coming"], now["o"] = decode[0](now["coming"]), decode[1](now["o"])
            self.cycles.append(now)
            out = now["o"]
            if out["valid"] and out["last"] and out["beat"] == self.beats - 1:
                finished.add(out["bag"])
                self.ended += 1
            going = oldest in finished and rng.random() < self.leave
            if going:
                finished.remove(oldest)
                oldest = (oldest + 1) % self.bags
            if self.leave:
                ctx.set(dut.left, going)

    async def send(self, ctx, items, **stall):
        """Send ``items``, and wait until all have been read."""
        self.ended = 0
        ctx.set(self.dut.vector_beats, self.beats)
        await ctx.tick().repeat(2)
        await sender(self.dut.i, items, **stall)(ctx)
        while self.ended < len(bags_in(items)):
            await ctx.tick()
        await ctx.tick().repeat(20)

    def run(self, items, **stall):
        """Send ``items``, check all output, and return the cycles of beats in and out."""
        async def bench(ctx):
            await self.send(ctx, items, **stall)

        simulate(powered_up(self.dut, len(items)), bench, background=[self.watch], limit=10_000)
        check_bags(self.cycles, items, self.beats, self.most, self.bags)
        return self.check_flow(items)

    def check_flow(self, items):
        """Check the flow of beats and the flags of the ring."""
        ins, reads = [], []
        left = number = 0
        fresh, stored = True, [0, 0]
        for cycle, (before, now) in enumerate(pairwise(self.cycles), 1):
            coming, out = now["coming"], now["o"]
            # A turn is decided two cycles before its beat is coming.
            waited = stored[-2] // self.beats - -(-len(reads) // self.beats)
            stored.append(len(ins))
            if coming["valid"]:
                reads.append(cycle)
            # Beats taken before this cycle are in the ring.
            waits = len(ins) // self.beats - -(-len(reads) // self.beats)
            assert waits >= 0, "no beat is read before its vector is whole"
            assert out["valid"] == before["coming"]["valid"]
            assert not out["valid"] or all(
                out[name] == before["coming"][name] for name in ("slot", "first"))
            assert not (now["idle"] and (waits or coming["valid"]))
            assert now["idle"] or waits or coming["valid"] or out["valid"]
            assert not now["stall"] or (waited and not coming["valid"])
            if self.beats == 1 and waited:
                assert now["stall"] != coming["valid"], "a turn is used, or counted"
            if now["taken"]:
                assert now["bag"] == number % self.bags
                assert not fresh or number - left < self.bags
                fresh = ends_bag(items[len(ins)])
                number += fresh
                ins.append(cycle)
            assert len(ins) - len(reads) <= self.depth, "no beat is overwritten"
            left += now["left"]
        assert len(ins) == len(items) == len(reads) and self.cycles[-1]["idle"]
        return ins, [cycle + 1 for cycle in reads]


def check_bags(cycles, items, beats, most, numbers, first=0):
    """Check the output beats: the vectors of every bag in order, each after its sum is ready."""
    bags, part, started = bags_in(items), 0, 0
    read: dict[int, tuple[int, int]] = {}  # by number: which bag is read, and vectors so far
    sums: dict[int, tuple] = {}  # by slot: of which bag, vectors and beat; since when
    for cycle, now in enumerate(cycles):
        out = now["o"]
        if not out["valid"]:
            continue
        assert out["beat"] == part and out["slot"] < round_slots(most)
        if out["first"] and part == 0:
            assert out["bag"] not in read and out["bag"] == (first + started) % numbers
            read[out["bag"]] = started, 0
            started += 1
        which, vectors = read[out["bag"]]
        assert (out["first"], out["keys"]) == (vectors == 0, vectors + 1)
        assert out["last"] == (vectors + 1 == len(bags[which]))
        assert now["data"] == bags[which][vectors][part]
        if vectors:
            *whose, since = sums[out["slot"]]
            assert whose == [which, vectors, part] and cycle - since >= SUMMED
        sums[out["slot"]] = which, vectors + 1, part, cycle
        part = (part + 1) % beats
        if part == 0:
            read[out["bag"]] = which, vectors + 1
            if out["last"]:
                del read[out["bag"]]
    assert started == len(bags) and not read and part == 0


@pytest.mark.few(4)
@pytest.mark.parametrize("beats, most, depth, bags, stall, leave", [
    (1, 1, 8, 8, 0.0, 1.0), (1, 4, 64, 4, 0.5, 0.05), (2, 4, 16, 8, 0.1, 0.3),
    (3, 4, 32, 16, 0.0, 0.1), (4, 4, 8, 2, 0.4, 0.5), (5, 16, 64, 8, 0.0, 1.0),
    (9, 16, 32, 4, 0.3, 0.2), (16, 16, 32, 2, 0.0, 0.1)])
def test_bags_in_order(beats, most, depth, bags, stall, leave):
    """Bags of many lengths through many laps, in rings of much and of the least room."""
    sizes = [size for sample in random_sizes(random.Random(beats), 200 // beats, 20)
             for size in sample] + [1] * 2 * bags
    items = items_of(sizes, beats, seed=depth)
    assert len(items) >= 3 * depth
    Ring(beats, most, depth, bags, leave).run(items, stall=stall, seed=bags)


@pytest.mark.parametrize("beats, stall", [(1, 0.0), (1, 0.8), (3, 0.0), (4, 0.5)])
def test_bags_of_one_vector_wait_for_nothing(beats, stall):
    """Every thread may start them, so each turn does: latency and rate are those of the block."""
    ring = Ring(beats, bags=64)
    ins, outs = ring.run(items_of([1] * 60, beats), stall=stall)
    assert outs[::beats] == [cycle + LATENCY for cycle in ins[beats - 1::beats]]
    assert stall or outs[-1] - outs[0] == len(outs) - 1
    assert not any(cycle["stall"] for cycle in ring.cycles)


@pytest.mark.parametrize("beats, sizes", [(1, [6] * 40), (2, [9] * 12), (4, [5] * 12)])
def test_one_beat_a_cycle(beats, sizes):
    """Once as many bags wait as take turns, none of them is lost while more come."""
    ring = Ring(beats, depth=256, bags=64)
    ins, outs = ring.run(items_of(sizes, beats))
    assert ins[-1] - ins[0] == len(ins) - 1
    assert {*range(ins[len(ins) // 2], ins[-1])} <= {*outs}


@pytest.mark.parametrize("beats, most", [(1, 4), (3, 4), (8, 16), (11, 16)])
def test_a_single_bag_has_a_vector_a_round(beats, most):
    """The others' turns are counted. Meanwhile a ring of ``depth`` beats takes as many."""
    ring = Ring(beats, most, depth=32)
    ins, outs = ring.run(items_of([160 // beats], beats))
    turns = -(-LOOP // beats)
    assert {b - a for a, b in pairwise(outs[::beats])} == {turns * beats}
    full = next((k for k, now in enumerate(ring.cycles) if not now["ready"]), None)
    if turns == 1:
        assert full is None and not any(now["stall"] for now in ring.cycles)
    else:
        stalls = sum(now["stall"] for now in ring.cycles)
        assert sum(cycle < full for cycle in ins) >= 32
        assert stalls == (turns - 1) * (160 // beats - 1)


def test_as_many_bags_as_numbers():
    """The next one waits until the oldest has left, however many have been read."""
    ring = Ring(1, bags=4, leave=0.0)
    items = items_of([1, 0, 3, 2, 1, 1, 0, 2], 1)
    ends = [k for k, item in enumerate(items) if ends_bag(item)]
    taken = []

    async def bench(ctx):
        ctx.set(ring.dut.vector_beats, 1)
        for left in range(5):
            await ctx.tick().repeat(40)
            taken.append(sum(now["taken"] for now in ring.cycles))
            assert not ctx.get(ring.dut.i.ready) or left == 4
            ctx.set(ring.dut.left, 1)
            await ctx.tick()
            ctx.set(ring.dut.left, 0)

    simulate(powered_up(ring.dut), bench, background=[ring.watch, sender(ring.dut.i, items)])
    assert taken == [end + 1 for end in ends[3:]]


@pytest.mark.parametrize("first, bags, then", [(1, 1, 4), (4, 1, 1), (1, 5, 4)])
def test_vectors_may_change_while_empty(first, bags, then):
    """However many were read before, the vectors of a bag find the sum that they are added to."""
    ring, phases = Ring(first), [items_of([1] * bags, first), items_of([3], then, 1)]

    async def bench(ctx):
        await ring.send(ctx, phases[0])
        assert ctx.get(ring.dut.idle)
        ring.cycles.clear()
        ring.beats = then
        await ring.send(ctx, phases[1])

    simulate(powered_up(ring.dut), bench, background=[ring.watch], limit=1_000)
    check_bags(ring.cycles, phases[1], then, ring.most, ring.bags, first=bags)
