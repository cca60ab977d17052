"""Lost bags against a plain list of the bags that each owner got, and of the vectors it owes."""

import random
from itertools import pairwise

import pytest

from rtl.bags.lost import BufferedLostBags, LostBags
from rtl.config import preset
from tests.support import counts_of, made, simulate

NODES, IDS = 4, 16
LOST = {1, 3}


def _segments(rng: random.Random, tag: int, node: int, size: int = 1) -> list[dict]:
    """Return the segments of a bag; the landing of its head is ``tag``, and its vector has ``size``
    beats."""
    count = rng.choice([1, 1, 2, 5])
    segments = []
    for k in range(count):
        first = rng.randrange(8)
        words = rng.getrandbits(512) & ~(0xFFFF << 64 * first + 48) | tag << 64 * first + 48
        segments.append({"destination": node, "step": tag, "words": 9, "final_beat": size - 1,
                         "segment": {
            "words": words, "first": first, "size": 1, "head": int(k == 0),
            "tail": int(k == count - 1), "keys": 0}})
    return segments


@pytest.mark.parametrize("block", [LostBags, BufferedLostBags])
@pytest.mark.parametrize("beats", [1, 3])
@pytest.mark.parametrize("cut", [0, 1, 2, 4])
def test_each_bag_of_a_lost_node_is_answered(block, beats, cut):
    """By a walk if it had left, or had begun to leave; a later bag at once, without a word for its
    owner. Bags of other nodes leave whole, and vectors of other nodes pass whole.

    ``cut``: segments of a bag that have left when its node is lost.
    """
    config = preset("tiny").with_fields(link=True, nodes=NODES, owner_bags=IDS)
    dut, rng = made(block, config), random.Random(16 * beats + cut)
    sizes = {tag: rng.randint(1, beats) for tag in range(2 * IDS)}
    bags = {tag: _segments(rng, tag, tag % NODES, sizes[tag]) for tag in sizes}
    while len(bags[1]) < 5:
        bags[1] = _segments(rng, 1, 1, sizes[1])
    went: list[dict] = []
    came: list[tuple[int, int, int, int]] = []
    counters: dict[str, int] = {}

    async def send(ctx, segments):
        for segment in segments:
            ctx.set(dut.bags.payload, segment)
            ctx.set(dut.bags.valid, 1)
            await ctx.tick().until(dut.bags.ready)
            ctx.set(dut.bags.valid, 0)
            for _ in range(rng.randrange(3)):
                await ctx.tick()

    async def owners(ctx):
        """Send vectors of a live node, whole, at random times."""
        while True:
            for beat in range(beats):
                ctx.set(dut.vectors.payload, {
                    "tag": 1000, "data": 1, "last": beat == beats - 1, "lost": 0, "source": 0})
                ctx.set(dut.vectors.valid, 1)
                await ctx.tick().until(dut.vectors.ready)
                ctx.set(dut.vectors.valid, 0)
                await ctx.tick().repeat(1 + rng.randrange(3))

    async def sink(ctx):
        ctx.set(dut.fills.ready, 1)
        while True:
            ctx.set(dut.o.ready, rng.randrange(2))
            _, _, left, segment, filled, fill = await ctx.tick().sample(
                dut.o.valid & dut.o.ready, dut.o.payload, dut.fills.valid, dut.fills.payload)
            if left:
                went.append({"destination": segment.destination, "step": segment.step,
                             "words": segment.words, "final_beat": segment.final_beat,
                             "segment": {
                                 name: int(segment.segment[name])
                                 for name in ("words", "first", "size", "head", "tail", "keys")}})
            if filled:
                came.append((fill.tag, fill.source, fill.last, fill.lost))

    async def drive(ctx):
        await ctx.tick().until(dut.idle)
        for tag in range(2, IDS):
            await send(ctx, bags[tag])
        await send(ctx, bags[1][:cut])
        await ctx.tick().repeat(10)
        ctx.set(dut.lost, 1 << 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.lost, 1 << 1 | 1 << 3)  # during the walk for node 1
        await ctx.tick()
        await send(ctx, bags[1][cut:])
        await ctx.tick().until(dut.idle)
        for tag in range(IDS, 2 * IDS):
            await send(ctx, bags[tag])
        await ctx.tick().until(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    simulate(dut, drive, background=[owners, sink], limit=20_000)
    later = {tag for tag in range(IDS, 2 * IDS) if tag % NODES in LOST}
    swallowed = later if cut else later | {1}
    order = [*range(2, IDS), 1, *range(IDS, 2 * IDS)]
    assert went == [segment for tag in order if tag not in swallowed for segment in bags[tag]]
    assert counters["kept"] == len(swallowed)
    zeros = [(tag, source) for tag, source, last, lost in came if lost and last]
    assert set(zeros) == {(tag, tag % NODES) for tag in range(1, 2 * IDS) if tag % NODES in LOST}
    # A second walk may answer an id again; the landing of bags drops that answer.
    assert all(zeros.count((tag, tag % NODES)) == 1 for tag in later)
    whole = [k + 1 for k, (_, _, last, _) in enumerate(came) if last]
    for first, end in pairwise([0, *whole]):
        (tag, lost), = {(tag, lost) for tag, _, _, lost in came[first:end]}
        assert end - first == (sizes[tag] if lost else beats)


def test_latencies():
    dut, cycles = made(BufferedLostBags, preset("tiny").with_fields(link=True, owner_bags=IDS)), {}
    names = dict(zip(("sent", "vector", "zeros"), BufferedLostBags.LATENCY.values(), strict=True))

    async def drive(ctx):
        ctx.set(dut.lost, 2)
        ctx.set(dut.vectors.payload.last, 1)
        for port in (dut.o, dut.fills):
            ctx.set(port.ready, 1)
        await ctx.tick().until(dut.settled)
        await ctx.tick().repeat(2)
        for name, came in (("sent", dut.o), ("vector", dut.fills), ("zeros", dut.fills)):
            port = dut.vectors if name == "vector" else dut.bags
            if name != "vector":
                ctx.set(port.payload, _segments(random.Random(1), 1, int(name == "zeros"))[0])
            ctx.set(port.valid, 1)
            await ctx.tick()
            ctx.set(port.valid, 0)
            cycles[name] = 1
            while not ctx.get(came.valid):
                cycles[name] += 1
                await ctx.tick()
            await ctx.tick().repeat(9)
            assert ctx.get(dut.idle)

    simulate(dut, drive)
    assert cycles == names


def test_a_config_without_bags_is_rejected():
    with pytest.raises(ValueError, match=r"^owner_bags must be at least 16, not 0$"):
        LostBags(preset("tiny"))
    with pytest.raises(TypeError, match=r"^config must be a NicConfig, not 'tiny'$"):
        LostBags("tiny")  # type: ignore[arg-type]
