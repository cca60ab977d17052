"""IndexPackager against a packer in Python; the host's parser reads the packets back."""

import random

import numpy as np
import pytest

from host.wire.indices import parse_indices
from host.wire.packets import WORDS
from rtl.config import preset
from rtl.delivery import IndexPackager
from rtl.formats import BEAT_BYTES, EMPTY_INDEX, Opcode
from tests.rtl.network.packing import follow_time
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, quiet_while_idle, receiver, sender, simulate

NEVER = 0xFFFF
FULL = IndexPackager.LATENCY["index that fills a packet", "header and tag beat"]
END = IndexPackager.LATENCY["step_end", "header and tag beat"]
STALLS = [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.6), (0.0, 0.9, 0.0), (0.3, 0.3, 0.3)]


def build(beats=3):
    """Return a packager of packets of ``beats``. Each beat except the first has 32 indices."""
    return made(IndexPackager, preset("tiny").with_fields(
        max_dimension=16, host_payload_beats=beats, net_payload_beats=2))


def samples_of(seed, steps, longest=26, jump=0.1):
    """Return samples: (number, step, indices). Some numbers are not consecutive."""
    rng, number, found = random.Random(seed), 0xFFFF_FFF0, []
    for step, count in steps:
        for _ in range(count):
            found.append((number, step, [rng.choice((EMPTY_INDEX, rng.getrandbits(9)))
                                         for _ in range(rng.randint(1, longest))]))
            number = (number + (1 if rng.random() >= jump else 3)) & 0xFFFF_FFFF
    return found


def items_of(samples):
    return [{"index": index, "sample": number, "step": step, "last": int(k == len(indices) - 1),
             "bag_end": k & 1, "empty": int(index == EMPTY_INDEX), "ends": 0}
            for number, step, indices in samples for k, index in enumerate(indices)]


def packets_of(items, most, ends=()):
    """Return the packets: step, sample, first slot, samples, last, indices.

    ``ends``: numbers of items after which ``step_end`` is set; it is also set at the end.
    """
    packets, slot = [], 0
    for number, item in enumerate(items):
        before = items[number - 1]
        step, place = before["step"], before["sample"] + before["last"] & 0xFFFF_FFFF
        if (not number or item["step"] != step or item["sample"] != place or number - 1 in ends
                or len(packets[-1][-1]) == most):
            packets.append([item["step"], item["sample"], slot, 0, False, []])
        packet = packets[-1]
        packet[3] += not packet[5] or bool(before["last"])
        packet[4] = bool(item["last"])
        packet[5].append(item["index"])
        slot = 0 if item["last"] else slot + 1
    return [tuple(packet) for packet in packets]


def parsed(headers, payload):
    """Return the packets as the host parses them."""
    found, beats = [], iter(payload)
    for header in headers:
        assert header["opcode"] == Opcode.INDICES and not header["empty"]
        lines = [next(beats)]
        while not lines[-1]["last"]:
            lines.append(next(beats))
        packet = np.zeros((1 + len(lines), WORDS), "<u4")
        for k, line in enumerate(lines):
            packet[k + 1] = np.frombuffer(line["data"].to_bytes(BEAT_BYTES, "little"), "<u4")
        part = parse_indices(packet, header["count"])
        assert not packet[2:].reshape(-1).view("<u2")[header["count"]:].any(), "zero where none is"
        assert header["answers"] == part.samples - (not part.last)
        found.append((header["step"], part.sample, part.first_slot, part.samples, part.last,
                      part.indices.tolist()))
    assert next(beats, None) is None
    return found


def run(dut, items, expected, *, stall=STALLS[0], ends=(), timeout=NEVER):
    """Return the counters, and the cycles in which headers left and indices entered."""
    headers: list[dict] = []
    payload: list[dict] = []
    beats = sum(1 - -len(packet[-1]) // 32 for packet in expected)
    came, left = [], []

    async def feed(ctx):
        ctx.set(dut.timeout, timeout)
        for number, item in enumerate(items):
            if number - 1 in ends or not number:
                ctx.set(dut.step_end, 1)
                await ctx.tick()
                ctx.set(dut.step_end, 0)
            if not any(stall) and not ends:
                await sender(dut.i, items)(ctx)
                break
            await sender(dut.i, [item], stall=stall[0], seed=number)(ctx)
        ctx.set(dut.step_end, 1)
        await ctx.tick()
        ctx.set(dut.step_end, 0)

    async def watch(ctx):
        cycle = 0
        async for _, _, taken, header in ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.headers.valid & dut.headers.ready):
            came.extend([cycle] * taken)
            left.extend([cycle] * header)
            cycle += 1

    async def finish(ctx):
        await receiver(dut.payload, payload, beats, stall=stall[2], seed=4)(ctx)
        while len(headers) < len(expected):
            await ctx.tick()
        for _ in range(20):
            assert not ctx.get(dut.payload.valid) and not ctx.get(dut.headers.valid)
            await ctx.tick()
        assert ctx.get(dut.idle)

    counters = {}

    async def count(ctx):
        await finish(ctx)
        counters.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut), feed, count, receiver(
        dut.headers, headers, len(expected), stall=stall[1], seed=3), background=[
            follow_time(dut, 0xFFFF_FFF0), watch, quiet_while_idle(dut.idle, [dut.i.valid], [
                dut.headers.valid & dut.headers.ready, dut.payload.valid & dut.payload.ready])],
             limit=5_000)
    assert parsed(headers, payload) == expected
    assert counters["indices"] == len(items) and counters["packets"] == len(expected)
    assert sum(counters[name] for name in ("full", "timeouts", "step_ends", "changes")) == len(
        expected)
    return counters, came, left


@pytest.mark.few(4)
@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("beats", [3, 4])
def test_indices_of_several_steps(beats, stall):
    samples = samples_of(beats, [(7, 9), (8, 1), (9, 4), (7, 6)])
    items = items_of(samples)
    expected = packets_of(items, 32 * (beats - 1))
    counters, _, _ = run(build(beats), items, expected, stall=stall)
    assert counters["changes"] >= 3 and counters["step_ends"] <= 1
    assert counters["full"] or beats > 3


def test_steps_are_compared_in_all_their_bits():
    """Pack consecutive samples whose steps alternate between two that differ by one bit."""
    items = items_of(samples_of(1, [(step, 1) for other in a_bit_apart(0xFFFE)
                                    for step in (0xFFFE, other)], longest=2, jump=0))
    counters, _, _ = run(build(), items, packets_of(items, 64))
    assert counters["changes"] == 31


@pytest.mark.parametrize("stall", [STALLS[0], STALLS[4]])
def test_an_end_of_a_step_closes_its_packet(stall):
    items = items_of(samples_of(3, [(7, 10)], jump=0))
    ends = {0, 5, 6, 40, 71}
    expected = packets_of(items, 64, ends)
    counters, _, _ = run(build(), items, expected, stall=stall, ends=ends)
    # If the next index is already waiting, it closes the packet.
    assert counters["step_ends"] + counters["changes"] + counters["full"] == len(expected)
    assert counters["step_ends"] >= 2


@pytest.mark.parametrize("count", [1, 31, 32, 33, 63, 64, 65, 128])
def test_packets_are_as_full_as_they_get(count):
    items = items_of([(9, 4, [k & 0x1FF for k in range(count)])])
    expected = packets_of(items, 64)
    assert [len(packet[-1]) for packet in expected] == [64] * (count // 64) + (
        [count % 64] if count % 64 else [])
    counters, came, left = run(build(), items, expected)
    assert counters["full"] == count // 64
    if count == 64:
        assert left[0] == came[-1] + FULL
    if count < 64:
        assert left[0] == came[-1] + 1 + END


@pytest.mark.parametrize("longest, jump", [(26, 0), (1, 1.0), (3, 0.3)])
def test_an_index_a_cycle_whatever_closes_packets(longest, jump):
    items = items_of(samples_of(5, [(1, 9), (2, 4), (3, 4)], longest, jump))
    _, came, _ = run(build(64), items, packets_of(items, 2016))
    # A packet of one index leaves in two beats: short packets back up.
    if jump < 1:
        assert came == list(range(came[0], came[0] + len(items)))


def test_an_open_packet_leaves_by_time_and_is_not_idle():
    dut = build()
    headers: list[dict] = []
    payload: list[dict] = []
    items = items_of([(1, 5, [3, 4, 5]), (2, 5, [6])])

    async def bench(ctx):
        ctx.set(dut.timeout, 40)
        ctx.set(dut.credit, 77)
        await sender(dut.i, items[:2])(ctx)
        await ctx.tick().repeat(30)
        assert not ctx.get(dut.idle) and not ctx.get(dut.headers.valid)
        await receiver(dut.headers, headers, 1)(ctx)
        await receiver(dut.payload, payload, 2)(ctx)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle) and ctx.get(dut.counters.timeouts) == 1
        await ctx.tick().repeat(60)
        await sender(dut.i, items[2:])(ctx)
        await ctx.tick().repeat(30)
        assert not ctx.get(dut.headers.valid)
        await receiver(dut.headers, headers, 2)(ctx)
        await receiver(dut.payload, payload, 4)(ctx)

    simulate(powered_up(dut), bench, background=[follow_time(dut, 0xFFFF_FFF0)])
    assert [header["credit"] for header in headers] == [77, 77]
    assert parsed(headers, payload) == [(5, 1, 0, 1, False, [3, 4]), (5, 1, 2, 2, True, [5, 6])]


def test_an_end_without_an_open_packet_changes_nothing():
    dut = build()
    headers: list[dict] = []
    payload: list[dict] = []

    async def end(ctx):
        ctx.set(dut.step_end, 1)
        await ctx.tick()
        ctx.set(dut.step_end, 0)
        await ctx.tick().repeat(12)

    async def bench(ctx):
        ctx.set(dut.timeout, NEVER)
        await end(ctx)
        assert ctx.get(dut.idle) and not ctx.get(dut.headers.valid)
        await sender(dut.i, items_of([(1, 5, [3, 4])]))(ctx)
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.headers.valid)
        await end(ctx)
        await end(ctx)
        await receiver(dut.headers, headers, 1)(ctx)
        await receiver(dut.payload, payload, 2)(ctx)
        assert ctx.get(dut.counters.step_ends) == 1

    simulate(powered_up(dut), bench)
    assert parsed(headers, payload) == [(5, 1, 0, 1, True, [3, 4])]


def test_a_full_buffer_holds_up_what_comes():
    """With room for the beats of two packets and a stalled output, no further indices enter."""
    items = items_of([(1, 5, [k & 0xFF for k in range(400)])])
    dut, headers, before = build(), [], []
    payload: list[dict] = []
    expected = packets_of(items, 64)

    async def bench(ctx):
        ctx.set(dut.timeout, 4000)
        await ctx.tick().repeat(420)
        before.append(ctx.get(dut.i.ready))
        await receiver(dut.payload, payload, sum(
            1 - -len(packet[-1]) // 32 for packet in expected))(ctx)

    async def ends(ctx):
        await sender(dut.i, items)(ctx)
        ctx.set(dut.step_end, 1)
        await ctx.tick()
        ctx.set(dut.step_end, 0)

    simulate(powered_up(dut), bench, ends, receiver(dut.headers, headers, len(expected)))
    assert before == [0] and parsed(headers, payload) == expected


@pytest.mark.parametrize("beats", [3, 64])
def test_packets_that_wait_are_all_sent(beats):
    """Packets of one index, one per cycle, fill the places of beats, or of headers."""
    items = items_of(samples_of(5, [(1, 40)], longest=1, jump=1.0))
    dut, headers = build(beats), []
    payload: list[dict] = []

    async def bench(ctx):
        ctx.set(dut.timeout, 4000)
        await ctx.tick().repeat(80)
        assert not ctx.get(dut.i.ready)
        await receiver(dut.payload, payload, 2 * len(items))(ctx)

    async def ends(ctx):
        await sender(dut.i, items)(ctx)
        ctx.set(dut.step_end, 1)
        await ctx.tick()
        ctx.set(dut.step_end, 0)

    simulate(powered_up(dut), bench, ends, receiver(dut.headers, headers, len(items)),
             limit=1_000)
    assert parsed(headers, payload) == packets_of(items, 32 * (beats - 1))


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        IndexPackager("tiny")
