"""BagSender: each start gets exactly the words of its bag, in order, with its tag or place."""

import random

import pytest

from rtl.bags.sender import BagSender
from rtl.formats import words_of
from tests.rtl.bags.words import DCNV2_BAGS, bag, record, segments_of
from tests.support import counts_of, made, receiver, sender, simulate

MOST = 176


def random_bags(rng: random.Random, keys: list[int]) -> list[list[dict]]:
    """Return the segments of bags, which lie in packets between records."""
    bags: list[list[dict]] = []
    for number in keys:
        words = [record(rng)[0] for _ in range(rng.randrange(9))] + bag(
            rng, number, wide=int(rng.random() < 0.3), weighted=int(rng.random() < 0.3))
        bags.append([item["segment"] for item in segments_of(words, 0, MOST) if not item["plain"]])
    return bags


def random_starts(rng: random.Random, count: int, own: float) -> list[dict]:
    return [{"destination": rng.getrandbits(8), "step": rng.getrandbits(16),
             "landing": rng.getrandbits(16), "own": int(rng.random() < own),
             "final_beat": rng.getrandbits(4)} for _ in range(count)]


def sent(segments: list[dict], landing: int) -> tuple[list[dict], int]:
    """Return the segments of a bag with ``landing`` in its head, and the number of its words."""
    head, at = segments[0], 64 * segments[0]["first"] + 48
    words = head["words"] & ~(0xFFFF << at) | landing << at
    first = head["words"] >> 64 * head["first"]
    size = 1 + words_of(first & 0xFFFF, first >> 16 & 1, first >> 17 & 1)
    assert size == sum(each["size"] for each in segments)
    return [head | {"words": words}, *segments[1:]], size


def run(bags, starts, stall=0.0, seed=0):
    """Run starts and bags; return the output, the requests, the counters and the cycles."""
    rng, dut = random.Random(seed), made(BagSender)
    tags = [rng.getrandbits(16) for start in starts if not start["own"]]
    foreign, own, asked, counters = [], [], [], {}
    sizes = [sum(len(each) for each, start in zip(bags, starts) if start["own"] == kind)
             for kind in (0, 1)]

    async def watch(ctx):
        async for _, _, event, node, place, final, tag, taken in ctx.tick().sample(
                dut.asked.valid, dut.asked.node, dut.asked.place, dut.asked.final_beat,
                dut.id.payload, dut.id.valid & dut.id.ready):
            assert event == taken, "each id is taken with its request"
            if event:
                asked.append((tag, node, place, final))

    async def end(ctx):
        while len(foreign) < sizes[0] or len(own) < sizes[1]:
            await ctx.tick()
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(
        dut, sender(dut.starts, starts, stall=stall, seed=seed),
        sender(dut.segments, [each for segments in bags for each in segments], stall=stall,
               seed=seed + 1),
        sender(dut.id, tags, stall=stall, seed=seed + 2),
        receiver(dut.o, foreign, sizes[0], stall=stall, seed=seed + 3),
        receiver(dut.own, own, sizes[1], stall=stall, seed=seed + 4), end, background=[watch])
    assert asked == [(tag, *(start[name] for name in ("destination", "landing", "final_beat")))
                     for tag, start in zip(
        tags, (start for start in starts if not start["own"]), strict=True)]
    check(bags, starts, tags, foreign, own)
    assert counters["own"] == sum(start["own"] for start in starts)
    assert counters["bags"] == len(starts) - counters["own"]
    return counters, cycles


def check(bags, starts, tags, foreign, own):
    """Compare the output with the words of each start's bag."""
    expected: tuple[list, list] = [], []
    rest = iter(tags)
    for segments, start in zip(bags, starts, strict=True):
        landing = start["landing"] if start["own"] else next(rest)
        given, size = sent(segments, landing)
        where = ({"node": start["destination"]} if start["own"] else
                 {"destination": start["destination"], "words": size})
        expected[start["own"]].extend(
            {"segment": each, "step": start["step"], "final_beat": start["final_beat"], **where}
            for each in given)
    assert foreign == expected[0] and own == expected[1]


@pytest.mark.parametrize("own, stall", [(0.0, 0.0), (0.3, 0.3), (0.5, 0.0), (0.2, 0.6)])
def test_each_start_gets_the_words_of_its_bag(own, stall):
    rng = random.Random(stall)
    keys = [rng.choice([1, 1, 2, 3, 15, 16, 40, rng.randrange(1, 80)]) for _ in range(80)]
    run(random_bags(rng, keys), random_starts(rng, 80, own), stall)


@pytest.mark.parametrize("keys, wide, weighted", [
    (350, 0, 0), (175, 1, 0), (174, 0, 1), (116, 1, 1), (1, 0, 0), (1, 1, 1)])
def test_words_of_the_longest_and_shortest_bags(keys, wide, weighted):
    rng = random.Random(keys)
    words = bag(rng, keys, wide=wide, weighted=weighted)
    assert len(words) <= MOST
    segments = [item["segment"] for item in segments_of(words, 0, MOST)]
    run([segments], random_starts(rng, 1, 0.0))


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_one_segment_a_cycle(own):
    """The next start is taken with the tail: bags follow each other without a gap."""
    rng = random.Random(3)
    bags = random_bags(rng, list(DCNV2_BAGS) * 4)
    _, cycles = run(bags, random_starts(rng, len(bags), own))
    assert cycles <= sum(map(len, bags)) + BagSender.LATENCY[
        "start and segment", "the segment, sent"] + 1


def test_latency():
    """A start and its only segment that come together leave together."""
    rng, dut, came = random.Random(4), made(BagSender), []
    [segments], [start] = random_bags(rng, [1]), random_starts(rng, 1, 0.0)

    async def watch(ctx):
        assert ctx.get(dut.idle)
        for cycle in range(8):
            if ctx.get(dut.o.valid):
                came.append(cycle)
            ctx.set(dut.o.ready, 1)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, watch, sender(dut.starts, [start]), sender(dut.segments, segments[:1]),
             sender(dut.id, [7]))
    assert came == [BagSender.LATENCY["start and segment", "the segment, sent"]]


def test_own_bags_need_no_id():
    rng = random.Random(8)
    counters, _ = run(random_bags(rng, [3] * 5), random_starts(rng, 5, 1.0))
    assert counters["stall_ids"] == 0


def test_a_bag_waits_for_an_id():
    """An own bag before it leaves."""
    rng, dut, own = random.Random(5), made(BagSender), []
    bags, starts = random_bags(rng, [1, 1, 1]), random_starts(rng, 3, 0.0)
    starts[0]["own"] = 1

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(20)
        waited = ctx.get(dut.counters.stall_ids)
        assert ctx.get(dut.counters.own) == 1 and ctx.get(dut.counters.bags) == 0
        assert waited > 10
        ctx.set(dut.id.valid, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.counters.bags) == 2
        assert ctx.get(dut.counters.stall_ids) <= waited + 1

    simulate(dut, bench, receiver(dut.own, own, len(bags[0])), background=[
        sender(dut.starts, starts),
        sender(dut.segments, [each for segments in bags for each in segments])])


def test_nothing_leaves_before_its_start():
    rng, dut = random.Random(6), made(BagSender)
    bags, starts = random_bags(rng, [40, 3]), random_starts(rng, 2, 0.0)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.id.valid, 1)
        for _ in range(20):
            await ctx.tick()
            assert not ctx.get(dut.o.valid)
        await sender(dut.starts, starts)(ctx)
        await ctx.tick().until(dut.idle)
        assert ctx.get(dut.counters.bags) == 2
        await sender(dut.starts, starts[:1])(ctx)
        assert not ctx.get(dut.idle), "the words of a bag are still to come"

    simulate(dut, bench, sender(dut.segments, [each for segments in bags for each in segments]))
