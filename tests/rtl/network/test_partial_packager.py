"""Partial packager: its packets, bit for bit, with timeouts and credits."""

import random

import numpy as np
import pytest

from host.wire.partials import parse_partials, partials_that_fit
from rtl.formats import Opcode
from rtl.network import PartialPackager
from tests.rtl.network.packing import credit_of, expected_closings, run_packager
from tests.support import made

FIELDS = "table", "row", "beat", "level"


def make_items(rng, destinations, count, width, step_change=0.05):
    step, items = 0xFFFE, []
    for _ in range(count):
        if rng.random() < step_change:
            step = (step + 1) & 0xFFFF
        items.append({
            "destination": rng.randrange(destinations), "step": step,
            "record": {"table": rng.getrandbits(12), "row": rng.getrandbits(36),
                       "beat": rng.getrandbits(4), "level": rng.getrandbits(1)},
            "data": rng.getrandbits(32 * width)})
    return items


def content(item):
    return (*(item["record"][name] for name in FIELDS), item["data"])


def contents_of(header, beats, width):
    """Unpack a packet; unused bits must be zero, and the number of beats must be exact."""
    words = np.frombuffer(b"".join(b.to_bytes(64, "little") for b in beats), "<u4")
    packet = np.concatenate((np.zeros((1, 16), "<u4"), words.reshape(-1, 16)))
    count = header["count"]
    read = parse_partials(packet, count, width)
    first = -(-count // 8)
    assert not words[2 * count:16 * first].any() and not words[16 * first + width * count:].any()
    values = [int.from_bytes(row.tobytes(), "little") for row in read.values]
    return list(zip(*(array.tolist() for array in read[:4]), values))


def seen_packets(packets, opcode, width):
    for header, _ in packets:
        assert header["opcode"] == opcode and header["empty"] == 0
        assert header["credit"] == credit_of(header["destination"])
    return [(h["destination"], h["step"], contents_of(h, b, width)) for h, b in packets]


@pytest.mark.few(3)
@pytest.mark.parametrize("destinations,max_beats,width,gap,stall", [
    (1, 64, 16, 0.0, 0.0), (4, 22, 16, 0.3, 0.3), (5, 2, 8, 0.0, 0.5), (3, 5, 8, 0.2, 0.0),
    (2, 22, 4, 0.0, 0.2), (7, 3, 4, 0.2, 0.4), (3, 10, 16, 0.0, 0.6)])
def test_packets_without_time_outs(destinations, max_beats, width, gap, stall):
    """Every packet is predicted: content, step, and the order in which they leave."""
    rng = random.Random(destinations)
    items = make_items(rng, destinations, 180, width)
    dut = made(PartialPackager, destinations, max_beats, Opcode.SPILLED, False)
    packets, _, counters = run_packager(
        dut, items, {"timeout": 1500, "vector_packing": {16: 0, 8: 1, 4: 2}[width]},
        gap=gap, stall=stall, hurry=True)
    seen = seen_packets(packets, Opcode.SPILLED, width)
    limit = partials_that_fit(max_beats, width)
    expected, left = expected_closings(items, limit, content)
    assert seen[:len(expected)] == expected
    assert {d: (s, r) for d, s, r in seen[len(expected):]} == left
    assert len(seen) == len(expected) + len(left)
    full = sum(len(r) == limit for _, _, r in expected)
    assert counters["partials"] == len(items) and counters["packets"] == len(seen)
    assert counters["beats"] == sum(len(beats) for _, beats in packets)
    assert (counters["full"], counters["timeouts"]) == (full, len(left))
    assert counters["step_changes"] == len(expected) - full
    assert counters["stall_credit"] == 0


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("window,width,stall", [
    (2, 16, 0.0), (4, 8, 0.3), (7, 4, 0.3), (64, 16, 0.0)])
def test_window_is_kept(window, width, stall):
    """Never more than a window of beats is out, and all gets through as credit returns."""
    rng = random.Random(window)
    destinations, max_beats = 3, 10
    dut = made(PartialPackager, destinations, max_beats, Opcode.PARTIALS, True)
    items = make_items(rng, destinations, min(30 * window, 240), width, 0.01)
    sent, acknowledged, most = [0] * destinations, [0] * destinations, [0]

    def on_header(header):
        node, count = header["destination"], header["count"]
        sent[node] += -(-count // 8) - -count * width // 16
        most[0] = max(most[0], sent[node] - acknowledged[node])
        assert sent[node] - acknowledged[node] <= window
        assert count <= partials_that_fit(min(window - window // 4, max_beats), width)

    async def acknowledge(ctx):
        while True:
            await ctx.tick().repeat(rng.randrange(1, 20))
            if ctx.get(dut.idle):
                continue  # an acknowledgement counts as activity
            node = rng.randrange(destinations)
            acknowledged[node] = rng.randint(acknowledged[node], sent[node])
            ctx.set(dut.credit_in.node, node)
            ctx.set(dut.credit_in.value, acknowledged[node])
            ctx.set(dut.credit_in.valid, 1)
            await ctx.tick()
            ctx.set(dut.credit_in.valid, 0)

    packets, _, counters = run_packager(
        dut, items,
        {"timeout": 100, "window": window, "vector_packing": {16: 0, 8: 1, 4: 2}[width]},
        stall=stall, on_header=on_header, background=[acknowledge])
    queues = {d: [content(i) for i in items if i["destination"] == d]
              for d in range(destinations)}
    for destination, _, read in seen_packets(packets, Opcode.PARTIALS, width):
        assert queues[destination][:len(read)] == read
        del queues[destination][:len(read)]
    assert not any(queues.values())
    assert counters["stall_credit"] == 0 if window == 64 else most[0] == window
    assert counters["stall_credit"] > 0 or window == 64


@pytest.mark.few(2)
@pytest.mark.parametrize("destinations,width", [(1, 16), (8, 16), (8, 8), (3, 4)])
def test_full_rate(destinations, width):
    """A beat a cycle comes in or a beat a cycle leaves, whichever takes longer."""
    rng = random.Random(3)
    items = make_items(rng, destinations, 600, width, 0)
    dut = made(PartialPackager, destinations, 22, Opcode.ROW_UPDATES, False)
    packets, cycles, _ = run_packager(
        dut, items, {"timeout": 300, "vector_packing": {16: 0, 8: 1, 4: 2}[width]})
    beats = sum(len(beats) for _, beats in packets)
    # At the end, add a timeout and the open packets of all destinations.
    last = 300 + 60 + 22 * destinations * (width < 16)
    assert cycles <= max(beats, len(items) / 0.99) + last
    assert beats <= len(items) / partials_that_fit(22, width) * 22 + 2 * destinations


def test_latency():
    """The cycles that the block states from the beat that fills a packet."""
    for credited in (False, True):
        at, clock = {}, [0]
        dut = made(PartialPackager, 1, 4, Opcode.PARTIALS, credited)
        items = make_items(random.Random(0), 1, 3, 16, 0)

        async def watch(ctx):
            async for *_, taken, header, beat in ctx.tick().sample(
                    dut.i.valid & dut.i.ready, dut.headers.valid, dut.payload.valid):
                clock[0] += 1
                if taken:
                    at["in"] = clock[0]
                for name, valid in (("header", header), ("beat", beat)):
                    if valid:
                        at.setdefault(name, clock[0])

        registers = {"timeout": 1000} | ({"window": 22} if credited else {})
        run_packager(dut, items, registers, background=[watch])
        start = "beat that fills a packet" + (", with credits" if credited else "")
        assert (at["header"] - at["in"], at["beat"] - at["in"]) == (
            PartialPackager.LATENCY[start, "header"], PartialPackager.LATENCY[start, "first beat"])


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="max_beats must be between 2 and 140, not 1"):
        PartialPackager(4, 1, Opcode.PARTIALS, True)
    with pytest.raises(TypeError, match="destinations must be an integer, not '4'"):
        PartialPackager("4", 22, Opcode.PARTIALS, True)
    with pytest.raises(ValueError, match=r"buffers must be more than destinations \(4\), not 4"):
        PartialPackager(4, 22, Opcode.PARTIALS, True, buffers=4)
