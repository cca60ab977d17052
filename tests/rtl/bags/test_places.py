"""OwnerPlaces: a place for each bag, and its vector returns to the origin of its head."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from rtl.bags.places import OwnerPlaces
from rtl.config import NicConfig
from rtl.formats import BagHead, words_of
from tests.rtl.bags.words import bag, segments_of
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, quiet_while_idle, receiver, sender, simulate

PLACES = 16
OWN = 200
"""Number of this node; the other nodes have lower numbers."""


def places(dimension: int = 32, own: bool = False) -> OwnerPlaces:
    config = NicConfig(max_dimension=dimension, hold_vectors=256, owner_bags=PLACES)
    return made(OwnerPlaces, config, own=own)


def random_bag(rng: random.Random, node: int | None = None,
               sizes: Sequence[int] = (1,)) -> list[dict]:
    """Return the segments of a bag in beats of a packet, at any word of its first beat, whose
    vector has one of ``sizes`` beats."""
    before = rng.randrange(8)
    words = bag(rng, rng.choice([1, 2, 3, 8, rng.randrange(1, 60)]), query=False,
                wide=rng.randrange(2), weighted=rng.randrange(2))
    items = segments_of([0] * before + words, 0, 1120, False)[before:]
    node = rng.randrange(OWN) if node is None else node
    beside = {"node": node, "step": rng.getrandbits(16), "final_beat": rng.choice(sizes) - 1}
    return [{"segment": item["segment"]} | beside for item in items]


def words_in(segments: list[dict]) -> list[int]:
    return [each["segment"]["words"] >> 64 * k & (1 << 64) - 1 for each in segments
            for k in range(each["segment"]["first"],
                           each["segment"]["first"] + each["segment"]["size"])]


class Gpu:
    """Takes bags at ``o``, checks them, and returns their vectors in any order, beside bad ones."""

    def __init__(self, dut, bags: list[list[dict]], *, seed: int, bits: int = 512,
                 bad: float = 0.0, gap: float = 0.0, stall: float = 0.0, hold: int = 0):
        self.dut, self.rng = dut, random.Random(seed)
        self.bad, self.gap, self.stall, self.hold = bad, gap, stall, hold
        self.left, self.mask = len(bags), (1 << bits) - 1
        # By the words behind the head, which are random and stay unchanged.
        self.origins = {tuple(words_in(each)): each for each in bags}
        self.open: list[dict] = []
        self.waiting: dict[int, dict] = {}
        self.sizes: dict[int, int] = {}
        self.expected: list[dict] = []
        self.order: list[tuple[int, int]] = []
        self.refused = 0
        self.closed: int | None = None

    async def take(self, ctx):
        """Take segments and check each whole bag."""
        while self.left:
            ctx.set(self.dut.o.ready, int(self.rng.random() >= self.stall))
            item, valid, ready = ctx.get(self.dut.o.payload), ctx.get(self.dut.o.valid), ctx.get(
                self.dut.o.ready)
            if valid and ready:
                self.open.append(_plain(item))
                if self.open[-1]["segment"]["tail"]:
                    self.whole(self.open)
                    self.open = []
            await ctx.tick()
        ctx.set(self.dut.o.ready, 0)

    def whole(self, segments: list[dict]):
        head, *rest = words_in(segments)
        fields = BagHead.from_bits(head)
        place, mask = int(fields.landing), (1 << 48) - 1
        (key, sent), = [each for each in self.origins.items()
                        if each[0][1:] == tuple(rest) and each[0][0] & mask == head & mask]
        del self.origins[key]
        assert place < PLACES and place not in self.waiting
        size = 1 + words_of(int(fields.keys), int(fields.wide), int(fields.weighted))
        assert len(rest) + 1 == size
        for got, put in zip(segments, sent, strict=True):
            assert (got["destination"], got["step"], got["words"]) == (0, put["step"], size)
            same = ("first", "size", "head", "tail", "keys")
            assert all(got["segment"][name] == put["segment"][name] for name in same)
        self.order.append((sent[0]["node"], key[0]))
        self.waiting[place] = {"landing": key[0] >> 48, "node": sent[0]["node"],
                               "step": sent[0]["step"]}
        self.sizes[place] = sent[0]["final_beat"] + 1
        self.left -= 1

    def vector(self) -> list[dict]:
        """Return the beats of a vector: of a bag that waits, or of a fault."""
        rng, odd = self.rng, None
        place = rng.choice(sorted(self.waiting) or [0])
        beats = self.sizes.get(place, 1)
        data = [rng.getrandbits(512) for _ in range(beats)]
        if rng.random() < self.bad or not self.waiting:
            fault = rng.randrange(3 if self.waiting else 1)
            if fault == 0:
                # A place that does not exist, or that the vector before has just closed.
                place |= 1 << rng.randrange(4, 16)
                place = self.closed if self.closed is not None and rng.randrange(2) else place
            elif fault == 1:
                data = data[:beats - 1] or data * 2
            elif beats > 1:
                odd = rng.randrange(1, beats)
            else:
                data *= 3
            self.closed, self.refused = None, self.refused + 1
        else:
            self.closed = place
            tag = self.waiting.pop(place)
            self.expected += [{"data": value & self.mask, "tag": tag, "last": int(n == beats - 1),
                               "final_beat": beats - 1} for n, value in enumerate(data)]
        return [{"tag": place ^ (n == odd), "data": value, "last": int(n == len(data) - 1),
                 "lost": rng.randrange(2)} for n, value in enumerate(data)]

    async def give(self, ctx):
        await ctx.tick().until(self.dut.vectors.ready)
        while self.left or self.waiting:
            few = len(self.waiting) <= min(self.hold, self.left - 1)
            if few or self.rng.random() < self.gap:
                ctx.set(self.dut.vectors.valid, 0)
                self.closed = None
                await ctx.tick()
                continue
            for beat in self.vector():
                ctx.set(self.dut.vectors.payload, beat)
                ctx.set(self.dut.vectors.valid, 1)
                assert ctx.get(self.dut.vectors.ready)
                await ctx.tick()
        ctx.set(self.dut.vectors.valid, 0)


def _plain(view) -> dict:
    return {name: _plain(view[name]) if hasattr(view[name], "shape") else int(view[name])
            for name in view.shape().members}


def run(dut, gpu: Gpu, sources: list, taken: list, bags: list, stall: float) -> int:
    """Run until the vectors of all ``bags`` are back; return the cycles."""
    total = sum(each[0]["final_beat"] + 1 for each in bags)

    async def watch(ctx):
        while len(taken) < total or not ctx.get(dut.idle):
            await ctx.tick()
        counts = counts_of(ctx, dut.counters)
        assert counts == counts | {"bags": len(bags), "vectors": len(bags),
                                   "bad_vectors": gpu.refused}

    moves = [dut.o.valid, dut.answers.valid, dut.landed]
    comes = [dut.vectors.valid, dut.foreign.valid, dut.o.ready, dut.answers.ready]
    return simulate(powered_up(dut), *sources, gpu.take, gpu.give,
                    receiver(dut.answers, taken, total, stall=stall), watch,
                    background=[quiet_while_idle(dut.idle, comes, moves)], limit=6000)


@pytest.mark.parametrize("dimension, beats, gap, stall, bad, hold", [
    (4, 1, 0.0, 0.0, 0.4, 0), (16, 1, 0.3, 0.3, 0.0, 15), (64, 4, 0.2, 0.5, 0.4, 8),
    (64, 3, 0.0, 0.0, 0.3, 3)])
def test_every_bag_returns_to_its_origin(dimension, beats, gap, stall, bad, hold):
    """Places are used many times; bad vectors change nothing."""
    rng, taken, dut = random.Random(beats), [], places(dimension)
    bags = [random_bag(rng, sizes=range(1, beats + 1)) for _ in range(120)]
    gpu = Gpu(dut, bags, seed=beats, bits=min(512, 32 * dimension), bad=bad, gap=gap,
              stall=stall, hold=hold)
    run(dut, gpu, [sender(dut.foreign, [item for each in bags for item in each], stall=gap)],
        taken, bags, stall)
    assert taken == gpu.expected and not gpu.origins
    assert (gpu.refused > 10) == (bad > 0)


def test_bags_of_this_node_are_not_split():
    """Each input keeps its order, and no bag contains segments of another one."""
    rng, taken, dut = random.Random(5), [], places(own=True)
    mine, others = ([random_bag(rng, node, (2,)) for _ in range(60)] for node in (OWN, None))
    gpu = Gpu(dut, mine + others, seed=3, gap=0.2, stall=0.2)
    run(dut, gpu, [sender(port, [item for each in bags for item in each], stall=0.2, seed=seed)
                   for port, bags, seed in ((dut.own, mine, 1), (dut.foreign, others, 2))],
        taken, mine + others, 0.2)
    assert taken == gpu.expected
    for bags, own in ((mine, True), (others, False)):
        assert [head for node, head in gpu.order if (node == OWN) == own] == [
            words_in(each)[0] for each in bags]
    changes = sum((a[0] == OWN) != (b[0] == OWN) for a, b in pairwise(gpu.order))
    assert changes > 20


def test_bags_wait_for_a_place():
    rng, dut = random.Random(6), places()
    bags, segments = [random_bag(rng) for _ in range(PLACES + 3)], []

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.answers.ready, 1)
        for _ in range(600):
            if ctx.get(dut.o.valid):
                segments.append(_plain(ctx.get(dut.o.payload)))
            await ctx.tick()
        assert segments and sum(each["segment"]["tail"] for each in segments) == PLACES
        assert ctx.get(dut.counters.stall_places) > 100 and ctx.get(dut.counters.bags) == PLACES
        assert not ctx.get(dut.foreign.ready)

    simulate(dut, watch, background=[
        sender(dut.foreign, [item for each in bags for item in each])])


@pytest.mark.parametrize("beats, own", [(1, False), (4, False), (1, True)])
def test_rates(beats, own):
    """A segment a cycle while places are free, and a beat a cycle in and out."""
    dut, taken = places(64, own=own), []
    bags = [random_bag(random.Random(seed), sizes=(beats,)) for seed in range(PLACES)]
    items = [item for each in bags for item in each]
    gpu = Gpu(dut, bags, seed=1)
    cycles: dict[str, list[int]] = {"in": [], "out": [], "vector": [], "answer": []}

    async def watch(ctx):
        await ctx.tick().until(dut.vectors.ready)
        cycle = 0
        ports = {"in": dut.foreign, "out": dut.o, "vector": dut.vectors, "answer": dut.answers}
        moved = [port.valid & port.ready for port in ports.values()]
        async for _, _, *now in ctx.tick().sample(*moved):
            for name, each in zip(cycles, now):
                cycles[name] += [cycle] * each
            cycle += 1

    async def after(ctx):
        await ctx.tick().until(dut.vectors.ready)
        await ctx.tick().repeat(4)
        await sender(dut.foreign, items)(ctx)

    async def later(ctx):
        while gpu.left:
            await ctx.tick()
        await gpu.give(ctx)

    simulate(dut, after, gpu.take, later,
             receiver(dut.answers, taken, PLACES * beats), background=[watch])
    assert taken == gpu.expected
    first = cycles["in"][0]
    assert cycles["in"] == [first + n for n in range(len(items))]
    latency = OwnerPlaces.LATENCY[
        "segment of another node, beside own bags" if own else "segment", "the same segment"]
    assert cycles["out"] == [each + latency for each in cycles["in"]]
    latency = OwnerPlaces.LATENCY["last beat of a vector", "its first beat"]
    assert cycles["answer"] == [each + latency + beats - 1 for each in cycles["vector"]]
    assert cycles["answer"][-1] - cycles["answer"][0] == PLACES * beats - 1
