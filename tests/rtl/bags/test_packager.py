"""Bag packager: its packets, word for word, with timeouts, credits and a most number of bags."""

import random

import pytest

from rtl.bags.packager import BagPackager
from rtl.formats import Opcode
from tests.rtl.bags.words import DCNV2_BAGS, bag, bags_of, outgoing
from tests.rtl.network.packing import credit_of, run_packager
from tests.support import a_bit_apart, made, quiet_while_idle, receiver, sender, simulate

Bag = tuple[int, int, list[int]]
"""Destination, step and words of a bag."""


def make_bags(rng, destinations: int, count: int, most: int, *, step_change=0.05) -> list[Bag]:
    """Return random bags of at most ``most`` words; some fill a packet, some are as short as can
    be."""
    step, bags = 0xFFFE, []
    for _ in range(count):
        if rng.random() < step_change:
            step = (step + 1) & 0xFFFF
        keys = rng.choice([1, 1, 2, 3, 5, 14, 15, 16, 40, rng.randrange(1, 2 * most)])
        words = bag(rng, keys, query=False, wide=rng.random() < 0.2, weighted=rng.random() < 0.2)
        if len(words) > most:
            words = bag(rng, rng.choice([2 * most - 2, 2 * most - 3, 2 * most - 4]), query=False)
        bags.append((rng.randrange(destinations), step, words))
    return bags


def items_of(rng, bags: list[Bag], first: int | None = None) -> list[dict]:
    return [item for destination, step, words in bags
            for item in outgoing(rng, words, destination, step, first=first)]


def expected_closings(bags: list[Bag], limit: int, batch: int = 1 << 30):
    """Return the packets (destination, step, bags, reason) in the order in which input alone closes
    them, and the rest by destination."""
    packets, opened = [], {}
    for destination, step, words in bags:
        if destination in opened:
            of, content = opened[destination]
            if of != step or sum(map(len, content)) + len(words) > limit:
                reason = "step_changes" if of != step else "full"
                packets.append((destination, *opened.pop(destination), reason))
        of, content = opened.setdefault(destination, (step, []))
        content.append(words)
        if sum(map(len, content)) > limit - 2 or len(content) >= batch:
            packets.append((destination, *opened.pop(destination), "full"))
    return packets, opened


def seen_packets(packets, opcode=Opcode.BAGS):
    """Return (destination, step, bags) of each packet; padding is zero, and no bag is cut."""
    seen = []
    for header, beats in packets:
        assert header["opcode"] == opcode and header["empty"] == 0
        assert header["credit"] == credit_of(header["destination"])
        words = [beat >> 64 * k & (1 << 64) - 1 for beat in beats for k in range(8)]
        assert len(beats) == -(-header["count"] // 8) and not any(words[header["count"]:])
        seen.append((header["destination"], header["step"], bags_of(words[:header["count"]])))
    return seen


@pytest.mark.few(3)
@pytest.mark.parametrize("destinations, max_beats, batch, gap, stall", [
    (1, 22, 64, 0.0, 0.0), (4, 3, None, 0.0, 0.4), (5, 2, None, 0.3, 0.3), (1, 4, 3, 0.2, 0.2),
    (8, 22, None, 0.0, 0.0), (3, 1, None, 0.0, 0.5), (2, 5, 1, 0.0, 0.0), (1, 3, 0, 0.1, 0.0)])
def test_packets_without_time_outs(destinations, max_beats, batch, gap, stall):
    """Every packet is predicted: content, step, the order in which they leave, and the reason."""
    rng = random.Random(destinations)
    bags = make_bags(rng, destinations, 200, 8 * max_beats)
    dut = made(BagPackager, destinations, max_beats, Opcode.BAGS, False,
               most_bags=batch is not None)
    most = {} if batch is None else {"batch": batch}
    packets, _, counters = run_packager(
        dut, items_of(rng, bags), {"timeout": 4000} | most, gap=gap, stall=stall, hurry=True)
    seen = seen_packets(packets)
    expected, left = expected_closings(bags, 8 * max_beats, max(1, batch) if most else 1 << 30)
    assert seen[:len(expected)] == [each[:3] for each in expected]
    assert {d: (s, r) for d, s, r in seen[len(expected):]} == left
    assert len(seen) == len(expected) + len(left)
    reasons = [reason for *_, reason in expected]
    assert counters["bags"] == len(bags) and counters["packets"] == len(seen)
    assert counters["keys"] == sum(words[0] & 0xFFFF for *_, words in bags)
    assert counters["segments"] >= sum(-(-len(words) // 8) for *_, words in bags)
    assert (counters["full"], counters["timeouts"]) == (reasons.count("full"), len(left))
    assert counters["step_changes"] == reasons.count("step_changes")
    assert counters["stall_credit"] == 0


def test_a_packet_is_filled_to_its_last_words():
    """Bags that leave 0, 1 or 2 words of a packet, and a bag of each such size behind them."""
    rng, bags = random.Random(3), []
    for left in (0, 1, 2, 3):
        for keys in (1, 2, 3, 4, 5):
            bags += [(0, 1, bag(rng, 2 * (24 - 1 - left), query=False)),
                     (0, 1, bag(rng, keys, query=False))]
    dut = made(BagPackager, 1, 3, Opcode.BAGS, False)
    packets, _, _ = run_packager(dut, items_of(rng, bags), {"timeout": 4000}, hurry=True)
    expected, left = expected_closings(bags, 24)
    assert seen_packets(packets) == [each[:3] for each in expected] + [
        (d, *rest) for d, rest in left.items()]
    assert {len(content) for *_, content, _ in expected} >= {1, 2}


def test_steps_are_compared_in_all_their_bits():
    rng = random.Random(4)
    steps = [step for other in a_bit_apart(0x5A5A) for step in (0x5A5A, 0x5A5A, other)]
    bags = [(0, step, bag(rng, 1 + k % 3, query=False)) for k, step in enumerate(steps)]
    dut = made(BagPackager, 1, 22, Opcode.BAGS, False)
    packets, _, counters = run_packager(dut, items_of(rng, bags), {"timeout": 4000}, hurry=True)
    expected, left = expected_closings(bags, 176)
    assert seen_packets(packets) == [each[:3] for each in expected] + [
        (d, *rest) for d, rest in left.items()]
    assert counters["step_changes"] == len(expected) == 31


@pytest.mark.few(2)
@pytest.mark.parametrize("destinations, timeout", [(3, 20), (1, 0), (8, 40), (8, 0)])
def test_time_out_bounds_the_wait(destinations, timeout):
    """No bag waits longer than the timeout, a round of checks and a bag in progress."""
    rng, now, seen_at, arrival = random.Random(timeout), [0], [], []
    dut = made(BagPackager, destinations, 4, Opcode.BAGS, False)
    bags = make_bags(rng, destinations, 120, 12)

    async def watch(ctx):
        async for _, _, valid, ready, head in ctx.tick().sample(
                dut.i.valid, dut.i.ready, dut.i.payload.segment.head):
            if valid and ready and head:
                arrival.append(now[0])

    packets, _, counters = run_packager(
        dut, items_of(rng, bags), {"timeout": timeout}, gap=0.85, background=[watch], now=now,
        start=(1 << 32) - 700, on_header=lambda _: seen_at.append(now[0]))
    queues = {d: [(words, step, at) for (of, step, words), at in zip(bags, arrival) if of == d]
              for d in range(destinations)}
    look = 1 << (destinations - 1).bit_length()
    for (destination, step, content), at in zip(seen_packets(packets), seen_at):
        sent, queues[destination] = (queues[destination][:len(content)],
                                     queues[destination][len(content):])
        assert content == [words for words, _, _ in sent] and {s for _, s, _ in sent} == {step}
        # A bag in progress has at most 3 segments, of about 7 cycles each with these gaps.
        assert at - sent[0][2] <= timeout + look + 24 + 60
    assert not any(queues.values())
    assert counters["timeouts"] > 20
    assert counters["full"] + counters["timeouts"] + counters["step_changes"] == len(packets)


@pytest.mark.few(2)
@pytest.mark.parametrize("window, stall", [(3, 0.0), (6, 0.3), (64, 0.0)])
def test_window_is_kept(window, stall):
    """Never more than a window of beats is out, and all bags get through as credit returns."""
    rng = random.Random(window)
    destinations, limit = 4, 8 * min(6, window)
    dut = made(BagPackager, destinations, 6, Opcode.BAGS, True)
    bags = make_bags(rng, destinations, 120, limit, step_change=0.01)
    sent, acknowledged, most = [0] * destinations, [0] * destinations, [0]

    def on_header(header):
        node = header["destination"]
        sent[node] += -(-header["count"] // 8)
        most[0] = max(most[0], sent[node] - acknowledged[node])
        assert sent[node] - acknowledged[node] <= window
        assert header["count"] <= limit

    async def acknowledge(ctx):
        while True:
            for _ in range(rng.randrange(1, 30)):
                await ctx.tick()
            node = rng.randrange(destinations)
            stale = rng.random() < 0.2  # without effect
            if not stale:
                acknowledged[node] = rng.randint(acknowledged[node], sent[node])
            ctx.set(dut.credit_in, {
                "valid": 1, "node": node, "value": (acknowledged[node] - 5 * stale) & 0xFFFF})
            await ctx.tick()
            ctx.set(dut.credit_in.valid, 0)

    packets, _, counters = run_packager(
        dut, items_of(rng, bags), {"timeout": 200, "window": window}, stall=stall,
        on_header=on_header, background=[acknowledge])
    queues = {d: [words for of, _, words in bags if of == d] for d in range(destinations)}
    for destination, _, content in seen_packets(packets):
        assert queues[destination][:len(content)] == content
        del queues[destination][:len(content)]
    assert not any(queues.values())
    assert most[0] == window if window < 10 else counters["stall_credit"] == 0
    assert counters["stall_credit"] > 0 or window == 64


def test_a_lost_node_needs_no_credit():
    rng, dut = random.Random(6), made(BagPackager, 2, 3, Opcode.BAGS, True)
    bags = make_bags(rng, 2, 60, 24)
    packets, _, counters = run_packager(
        dut, items_of(rng, bags), {"timeout": 20, "window": 3, "lost": 3}, gap=0.2)
    sent = seen_packets(packets)
    for node in range(2):
        assert [words for of, _, content in sent if of == node for words in content] == [
            words for of, _, words in bags if of == node]
    assert counters["stall_credit"] == 0


def returning(dut):
    """Acknowledge each packet as its header leaves."""
    async def bench(ctx):
        count = {}
        async for _, _, valid, ready, header in ctx.tick().sample(
                dut.headers.valid, dut.headers.ready, dut.headers.payload):
            ctx.set(dut.credit_in.valid, valid & ready)
            if valid and ready:
                node = header.destination
                count[node] = count.get(node, 0) + -(-header.count // 8)
                ctx.set(dut.credit_in.node, node)
                ctx.set(dut.credit_in.value, count[node] & 0xFFFF)
    return bench


@pytest.mark.few(3)
@pytest.mark.parametrize("destinations, keys, first", [
    (8, DCNV2_BAGS, None), (1, (100,), None), (1, (1,), None), (8, (350,), 0), (4, (20,), None),
    (1, (13, 1), 3)])
def test_a_segment_a_cycle(destinations, keys, first):
    """A cycle is added only where a packet closes before a bag that does not fit."""
    rng = random.Random(7)
    bags = [(rng.randrange(destinations), 0, bag(rng, keys[k % len(keys)], query=False))
            for k in range(max(60, min(300, 30000 // max(keys))))]
    items = items_of(rng, bags, first)
    dut = made(BagPackager, destinations, 22, Opcode.BAGS, True)
    took: list[int] = []

    async def watch(ctx):
        cycle = 0
        async for _, _, valid, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            cycle += 1
            if valid and ready:
                took.append(cycle)

    packets, _, counters = run_packager(
        dut, items, {"timeout": 0xFFF, "window": 56}, background=[watch, returning(dut)],
        hurry=True)
    expected, left = expected_closings(bags, 176)
    ends = [each for each in expected if sum(map(len, each[2])) <= 174]
    assert len(packets) == len(expected) + len(left)
    # The first segments wait for the sweep of the buffers.
    assert took[-1] - took[5] <= len(items) - 6 + len(ends)
    assert counters["segments"] == len(items) and counters["stall_buffers"] == 0


def test_latency():
    """From the segment that fills a packet to its header and its first beat."""
    rng = random.Random(8)
    for credited, about in ((False, ""), (True, ", with credits")):
        dut = made(BagPackager, 2, 3, Opcode.BAGS, credited)
        seen, items = {}, items_of(rng, [(1, 5, bag(rng, 46, query=False))], 3)

        async def watch(ctx, dut=dut, seen=seen):
            cycle = 0
            ctx.set(dut.headers.ready, 1)
            ctx.set(dut.payload.ready, 1)
            async for _, _, last, header, beat in ctx.tick().sample(
                    dut.i.valid & dut.i.ready & dut.i.payload.segment.tail, dut.headers.valid,
                    dut.payload.valid):
                cycle += 1
                for name, happens in (("tail", last), ("header", header), ("first beat", beat)):
                    if happens:
                        seen.setdefault(name, cycle)

        async def run(ctx, dut=dut, items=items, credited=credited):
            ctx.set(dut.timeout, 4000)
            if credited:
                ctx.set(dut.window, 3)
            await ctx.tick().repeat(10)
            await sender(dut.i, items)(ctx)
            await ctx.tick().repeat(20)
            assert ctx.get(dut.idle)

        simulate(dut, run, background=[watch])
        for end in ("header", "first beat"):
            assert seen[end] - seen["tail"] == BagPackager.LATENCY[
                f"segment that fills a packet{about}", end]


def test_it_is_idle_only_when_nothing_moves():
    rng, dut = random.Random(9), made(BagPackager, 3, 2, Opcode.BAGS, False)
    bags = make_bags(rng, 3, 30, 16)
    expected, left = expected_closings(bags, 16)
    headers, beats, moved = [], [], []
    total = len(expected) + len(left)

    async def run(ctx):
        ctx.set(dut.timeout, 10)
        await ctx.tick().repeat(10)
        for item in items_of(rng, bags):
            await sender(dut.i, [item])(ctx)
            if item["segment"]["tail"] and rng.random() < 0.3:
                await ctx.tick().until(dut.idle)
        await ctx.tick().until(dut.idle)
        moved.append(len(headers))

    async def follow(ctx):
        time = 0
        async for _ in ctx.tick():
            time += 1
            ctx.set(dut.time, time)

    simulate(dut, run, background=[
        follow, receiver(dut.headers, headers, 1 << 30), receiver(dut.payload, beats, 1 << 30),
        quiet_while_idle(dut.idle, [dut.i.valid], [dut.headers.valid, dut.payload.valid])])
    assert moved[0] >= total


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="destinations must be between 1 and 256, not 0"):
        BagPackager(0, 22, Opcode.BAGS, True)
    with pytest.raises(TypeError, match="max_beats must be an integer, not '22'"):
        BagPackager(4, "22", Opcode.BAGS, True)
    with pytest.raises(ValueError, match=r"buffers must be more than destinations \(4\), not 4"):
        BagPackager(4, 22, Opcode.BAGS, True, buffers=4)
