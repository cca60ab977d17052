"""Record packager: its packets, byte for byte, with timeouts and credits."""

import random

import numpy as np
import pytest

from host.wire.steps import StepNews, parse_steps
from rtl.formats import Opcode, StepKind
from rtl.network.record_packager import RecordPackager
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import (
    Taken,
    answer_credit,
    credit_of,
    expected_closings,
    follow_time,
    run_packager,
)
from tests.support import made, receiver, sender

FOREVER = 0xFFFF


def make_items(rng, destinations, count, step_change=0.05):
    step, items = 0xFFFE, []
    for _ in range(count):
        if rng.random() < step_change:
            step = (step + 1) & 0xFFFF
        items.append({"destination": rng.randrange(destinations), "step": step,
                      "record": rng.getrandbits(64)})
    return items


def records_of(header, beats):
    """Unpack a packet; padding must be zero, and the number of beats must be exact."""
    lanes = [beat >> 64 * k & (1 << 64) - 1 for beat in beats for k in range(8)]
    assert len(beats) == -(-header["count"] // 8)
    assert not any(lanes[header["count"]:])
    return lanes[:header["count"]]


def seen_packets(packets, opcode):
    for header, _ in packets:
        assert header["opcode"] == opcode and header["empty"] == 0
        assert header["credit"] == credit_of(header["destination"])
    return [(h["destination"], h["step"], records_of(h, beats)) for h, beats in packets]


@pytest.mark.few(3)
@pytest.mark.parametrize("destinations,max_beats,batch,gap,stall,records", [
    (1, 64, 100, 0.0, 0.0, None), (4, 3, 24, 0.0, 0.4, None), (5, 2, 9, 0.3, 0.3, None),
    (8, 22, 8, 0.0, 0.0, None), (16, 1, 1, 0.2, 0.6, 1), (3, 2, 30, 0.0, 0.2, 11)])
def test_packets_without_time_outs(destinations, max_beats, batch, gap, stall, records):
    """Every packet is predicted: content, step, and the order in which they leave."""
    rng = random.Random(destinations)
    items = make_items(rng, destinations, 500)
    dut = made(RecordPackager, destinations, max_beats, Opcode.LOOKUP_REQUESTS, False,
               records=records)
    most = min(batch, max_beats * 8, records or batch)
    packets, _, counters = run_packager(
        dut, items, {"batch": batch, "timeout": 4000}, gap=gap, stall=stall, hurry=True)
    seen = seen_packets(packets, Opcode.LOOKUP_REQUESTS)
    expected, left = expected_closings(
        items, most, lambda item: item["record"])
    assert seen[:len(expected)] == expected
    assert {d: (s, r) for d, s, r in seen[len(expected):]} == left
    assert len(seen) == len(expected) + len(left)
    full = sum(len(r) == most for _, _, r in expected)
    assert counters["records"] == len(items) and counters["packets"] == len(seen)
    assert (counters["full"], counters["timeouts"]) == (full, len(left))
    assert counters["step_changes"] == len(expected) - full
    assert counters["stall_credit"] == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("destinations,timeout", [(1, 0), (3, 20), (8, 40), (8, 0)])
def test_time_out_bounds_the_wait(destinations, timeout):
    """No record waits longer than the time-out and one round of looks, in any packet."""
    rng, now, seen_at = random.Random(timeout), [0], []
    dut = made(RecordPackager, destinations, 4, Opcode.LOOKUPS, False)
    items = make_items(rng, destinations, 250)
    arrival = []

    async def watch(ctx):
        async for _, _, valid, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            if valid and ready:
                arrival.append(now[0])

    packets, _, counters = run_packager(
        dut, items, {"batch": 32, "timeout": timeout}, gap=0.85, background=[watch], now=now,
        start=(1 << 32) - 700, on_header=lambda _: seen_at.append(now[0]))
    queues = {d: [] for d in range(destinations)}
    for item, at in zip(items, arrival):
        queues[item["destination"]].append((item["record"], item["step"], at))
    look = 1 << (destinations - 1).bit_length()
    for (destination, step, records), at in zip(seen_packets(packets, Opcode.LOOKUPS), seen_at):
        sent, queues[destination] = (queues[destination][:len(records)],
                                     queues[destination][len(records):])
        assert records == [r for r, _, _ in sent] and {s for _, s, _ in sent} == {step}
        assert at - sent[0][2] <= timeout + look + 24
        if len(records) < 32 and queues[destination] and queues[destination][0][1] == step:
            assert at - sent[0][2] >= timeout
    assert not any(queues.values())
    assert counters["timeouts"] > 20
    assert counters["full"] + counters["timeouts"] + counters["step_changes"] == len(packets)


@pytest.mark.parametrize("window,stall", [
    pytest.param(1, 0.0, marks=pytest.mark.slow), (5, 0.3), (64, 0.0)])
def test_window_is_kept(window, stall):
    """Never more than a window of beats is out, and all gets through as credit returns."""
    rng = random.Random(window)
    destinations = 4
    dut = made(RecordPackager, destinations, 6, Opcode.LOOKUPS, True)
    items = make_items(rng, destinations, 700, 0.01)
    sent, acknowledged = [0] * destinations, [0] * destinations
    most = [0]

    def on_header(header):
        node = header["destination"]
        sent[node] += -(-header["count"] // 8)
        most[0] = max(most[0], sent[node] - acknowledged[node])
        assert sent[node] - acknowledged[node] <= window
        assert header["count"] <= 8 * min(window, 6)

    async def acknowledge(ctx):
        while True:
            for _ in range(rng.randrange(1, 30)):
                await ctx.tick()
            node = rng.randrange(destinations)
            kind = rng.random()
            ctx.set(dut.credit_in.node, node)
            ctx.set(dut.credit_in.valid, 1)
            if kind < 0.2:  # stale: must have no effect
                ctx.set(dut.credit_in.value, (acknowledged[node] - 5) & 0xFFFF)
            else:
                acknowledged[node] = rng.randint(acknowledged[node], sent[node])
                ctx.set(dut.credit_in.value, acknowledged[node] & 0xFFFF)
            await ctx.tick()
            ctx.set(dut.credit_in.valid, 0)

    packets, _, counters = run_packager(
        dut, items, {"batch": 1000, "timeout": 200, "window": window}, stall=stall,
        on_header=on_header, background=[acknowledge])
    queues = {d: [i["record"] for i in items if i["destination"] == d]
              for d in range(destinations)}
    for destination, _, records in seen_packets(packets, Opcode.LOOKUPS):
        assert queues[destination][:len(records)] == records
        del queues[destination][:len(records)]
    assert not any(queues.values())
    assert most[0] == window if window < 10 else counters["stall_credit"] == 0
    assert counters["stall_credit"] > 0 or window == 64


def test_acknowledgement_beyond_what_was_sent_counts_as_all():
    dut = made(RecordPackager, 2, 1, Opcode.LOOKUPS, True)
    items = [{"destination": 1, "step": 0, "record": k} for k in range(40)]
    out = [0]

    def on_header(_):
        out[0] += 1
        assert out[0] <= 2

    async def lie(ctx):
        while True:
            await ctx.tick().repeat(60)
            ctx.set(dut.credit_in.node, 1)
            ctx.set(dut.credit_in.value, 20000)
            ctx.set(dut.credit_in.valid, 1)
            out[0] = 0
            await ctx.tick()
            ctx.set(dut.credit_in.valid, 0)

    packets, _, counters = run_packager(dut, items, {"batch": 8, "timeout": 4000, "window": 2},
                                        on_header=on_header, background=[lie], packets=5)
    assert counters["stall_credit"] > 60
    assert [r for p in packets for r in records_of(*p)] == list(range(40))


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("destinations,batch", [(1, 64), (8, 176), (16, 64)])
def test_one_record_a_cycle(destinations, batch):
    rng = random.Random(3)
    items = make_items(rng, destinations, 1500, 0)
    dut = made(RecordPackager, destinations, 22, Opcode.LOOKUPS, True)

    async def acknowledge(ctx):
        count = [0] * destinations
        async for _, _, valid, ready, header in ctx.tick().sample(
                dut.headers.valid, dut.headers.ready, dut.headers.payload):
            ctx.set(dut.credit_in.valid, valid & ready)
            if valid & ready:
                count[header.destination] += -(-header.count // 8)
                ctx.set(dut.credit_in.node, header.destination)
                ctx.set(dut.credit_in.value, count[header.destination])

    _, cycles, counters = run_packager(
        dut, items, {"batch": batch, "timeout": 0xFF, "window": 56}, background=[acknowledge])
    # The last packets leave after their timeout.
    assert cycles <= len(items) / 0.95 + 0xFF + 60
    assert counters["stall_buffers"] == 0


def test_step_records_leave_at_once():
    """Alone in their packets, they never wait for another, nor for a time-out."""
    now, come, left = [0], [], []
    dut = made(RecordPackager, 4, 1, Opcode.STEPS, False, records=1)
    news = [StepNews(StepKind.END, 0xFFFFFFFF), StepNews(StepKind.DONE), StepNews(StepKind.CREDIT)]
    items = [{"destination": k % 4, "step": k // 5,
              "record": news[k % 3].kind << 32 | news[k % 3].count} for k in range(20)]

    async def watch(ctx):
        async for _, _, valid, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            if valid and ready:
                come.append(now[0])

    packets, _, _ = run_packager(dut, items, {"batch": 1, "timeout": 0xFFFF}, gap=0.9,
                                 background=[watch], now=now,
                                 on_header=lambda _: left.append(now[0]))
    assert max(out - at for at, out in zip(come, left, strict=True)) <= 8
    for k, (header, beats) in enumerate(packets):
        assert (header["destination"], header["step"]) == (k % 4, k // 5)
        assert header["credit"] == credit_of(k % 4) and header["count"] == 1
        packet = np.frombuffer(bytes(64) + beats[0].to_bytes(64, "little"), "<u4").reshape(2, 16)
        assert parse_steps(packet, 1) == [news[k % 3]]


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="destinations must be between 1 and 256, not 0"):
        RecordPackager(0, 22, Opcode.LOOKUPS, True)
    with pytest.raises(TypeError, match="max_beats must be an integer, not '22'"):
        RecordPackager(4, "22", Opcode.LOOKUPS, True)
    with pytest.raises(ValueError, match=r"buffers must be more than destinations \(4\), not 4"):
        RecordPackager(4, 22, Opcode.LOOKUPS, True, buffers=4)
    with pytest.raises(ValueError, match="records must be an integer between 1 and 16, not 17"):
        RecordPackager(4, 2, Opcode.LOOKUPS, True, records=17)


class Slow:
    """Lookups through a packager to three owners; owner 2 returns no credit until ``released``.
    Records that left, by owner."""

    def __init__(self, queued: int, window: int, *, count: int = 900, gap: float = 0.0,
                 stall: float = 0.0, release: int | None = None, step_change: float = 0.01,
                 wait: int = 1500):
        rng = random.Random(window)
        self.dut = dut = made(RecordPackager, 3, 6, Opcode.LOOKUPS, True, places=512)
        self.items = make_items(rng, 3, count, step_change)
        self.left: list[list[int]] = [[], [], []]
        self.cycles = 0
        sent, due = [0] * 3, []
        headers: list[dict] = []

        async def owners(ctx):
            """Return credit 40 cycles after a header; from owner 2 once it is released."""
            async for _, _, valid, ready, header in ctx.tick().sample(
                    dut.headers.valid, dut.headers.ready, dut.headers.payload):
                self.cycles += 1
                if valid and ready:
                    node = header.destination
                    sent[node] += -(-header.count // 8)
                    due.append((self.cycles + 40, node, sent[node]))
                ready_now = [entry for entry in due if entry[0] <= self.cycles and (
                    entry[1] != 2 or (release is not None and self.cycles >= release))][:1]
                ctx.set(dut.credit_in.valid, len(ready_now))
                for entry in ready_now:
                    due.remove(entry)
                    ctx.set(dut.credit_in.node, entry[1])
                    ctx.set(dut.credit_in.value, entry[2])

        async def run(ctx):
            for name, value in (("batch", 48), ("timeout", 30), ("window", window),
                                ("queued", queued)):
                ctx.set(getattr(dut, name), value)
            await ctx.tick().repeat(8)
            await sender(dut.i, self.items, stall=gap, seed=3)(ctx)
            await ctx.tick().repeat(wait)
            self.idle = bool(ctx.get(dut.idle))

        beats: list[int] = []
        taken: list[list[int]] = []

        def take(beat):
            beats.append(beat["data"])
            if beat["last"]:
                taken.append(list(beats))
                beats.clear()

        async def limit(ctx):
            await ctx.tick().repeat(12_000)

        endless = 1 << 30
        simulate(dut, run if queued else limit, background=[
            *([] if queued else [run]), owners, follow_time(dut), answer_credit(dut),
            receiver(dut.headers, headers, endless, stall=stall, seed=4),
            receiver(dut.payload, Taken(take), endless, stall=stall, seed=5)])
        for destination, _, records in seen_packets(list(zip(headers, taken)), Opcode.LOOKUPS):
            self.left[destination] += records

    def of(self, owner: int) -> list[int]:
        return [item["record"] for item in self.items if item["destination"] == owner]


@pytest.mark.thorough
def test_without_queues_an_owner_without_credit_blocks_the_others():
    run = Slow(0, 8)
    assert len(run.left[0]) < len(run.of(0)) // 2 and len(run.left[1]) < len(run.of(1)) // 2


@pytest.mark.thorough
@pytest.mark.parametrize("window,gap,stall,step_change,count", [
    (8, 0.0, 0.0, 0.01, 900), (1, 0.0, 0.0, 0.0, 60), (3, 0.5, 0.3, 0.2, 100),
    (64, 0.0, 0.2, 0.9, 900)])
def test_an_owner_without_credit_holds_back_only_its_own_lookups(window, gap, stall, step_change,
                                                                 count):
    run = Slow(1, window, gap=gap, stall=stall, step_change=step_change, count=count, wait=2500)
    for owner in (0, 1):
        assert run.left[owner] == run.of(owner)
    held = run.of(2)
    assert run.left[2] == held[:len(run.left[2])] and not run.idle
    assert 0 < len(run.left[2]) < len(held)


@pytest.mark.thorough
def test_an_owner_whose_credit_comes_late_gets_all_its_lookups():
    run = Slow(1, 8, release=2500, stall=0.1, wait=4500)
    assert [run.of(owner) for owner in range(3)] == run.left and run.idle
