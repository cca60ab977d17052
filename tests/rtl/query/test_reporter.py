"""Host reporter: every error once, and credits before the host runs short."""

import random

import pytest

from rtl.config import preset
from rtl.formats import Opcode, Status
from rtl.query import HostReporter
from rtl.query.reporter import OwedCredit
from tests.support import made, receiver, sender, simulate

CONFIG = preset("tiny")
REPORTED = HostReporter.LATENCY["credit", "its header"] + 2
"""Cycles after which a due credit has left and the block is idle again."""
QUARTER = CONFIG.query_beats // 4


def error(rng: random.Random) -> dict:
    return {"sample": rng.getrandbits(31), "step": rng.getrandbits(16),
            "status": rng.randrange(1, 10), "node": 0}


def value(record: dict) -> int:
    return record["sample"] | record["step"] << 32 | record["status"] << 48


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4)])
@pytest.mark.parametrize("training", [False, True])
def test_every_error_in_a_packet(stalls, training):
    rng = random.Random(1)
    errors = [error(rng) for _ in range(60)]
    refused = [{"status": rng.randrange(1, 10), "step": rng.getrandbits(16)} for _ in range(60)]
    dut = made(HostReporter, CONFIG.with_fields(training=training))
    headers, payloads, counters = [], [], {}
    # Rejected gradients have a port of their own.
    turned = dut.gradients_refused if training else dut.refused

    async def consume(ctx):
        # Less than a credit of its own requires.
        for _ in range(QUARTER):
            await ctx.tick().repeat(7)
            ctx.set(dut.consumed, ctx.get(dut.consumed) + 1)

    async def watch(ctx):
        while len(payloads) < 120 or len(headers) < 120:
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.idle)
        counters.update(errors=ctx.get(dut.counters.errors), credits=ctx.get(dut.counters.credits))

    simulate(dut, sender(dut.errors, errors, stall=stalls[0]), consume, watch,
             sender(turned, refused, stall=stalls[0], seed=4),
             receiver(dut.headers, headers, 120, stall=stalls[1]),
             receiver(dut.payload, payloads, 120, stall=stalls[1], seed=3))
    assert all(p["last"] for p in payloads)
    got = [p["data"] for p in payloads]
    wanted = [value(e) for e in errors]
    others = [value({"sample": 0xFFFFFFFF} | r) for r in refused]
    assert [g for g in got if g & 0xFFFFFFFF != 0xFFFFFFFF] == wanted
    assert [g for g in got if g & 0xFFFFFFFF == 0xFFFFFFFF] == others
    for head, data in zip(headers, got):
        assert head | {"credit": 0} == {
            "opcode": Opcode.ERRORS, "destination": 0, "step": data >> 32 & 0xFFFF, "count": 1,
            "credit": 0, "empty": 0, "final_beat": 0, "address": 0, "status": data >> 48 & 0xFF,
            "answers": int(data & 0xFFFFFFFF != 0xFFFFFFFF)}
    credits = [head["credit"] for head in headers]
    assert credits == sorted(credits) and credits[-1] <= QUARTER
    assert counters == {"errors": 120, "credits": 0}


def bench_of(script, config=CONFIG):
    dut, sent = made(HostReporter, config), []

    async def take(ctx):
        ctx.set(dut.headers.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(dut.headers.valid, dut.headers.payload):
            if valid:
                sent.append((payload["opcode"], payload["empty"], payload["count"],
                             payload["credit"]))

    async def bench(ctx):
        await script(ctx, dut, sent)

    simulate(dut, bench, background=[take])


@pytest.mark.parametrize("before", [
    20 * QUARTER, pytest.param(65536 - 2 * QUARTER, marks=pytest.mark.slow)])
def test_credit_when_a_quarter_behind(before):
    """Start ``before`` beats below 2^16; the slow case covers the whole range once."""
    async def script(ctx, dut, sent):
        base = 0x10000 - before
        ctx.set(dut.consumed, base)
        await ctx.tick().repeat(REPORTED)
        assert sent == [(Opcode.CREDIT, 1, 0, base)] and ctx.get(dut.idle)
        sent.clear()
        for _ in range(before // (QUARTER + 1) + 20):
            ctx.set(dut.consumed, (base + QUARTER) & 0xFFFF)
            await ctx.tick().repeat(REPORTED)
            assert ctx.get(dut.idle) and not sent
            base = (base + QUARTER + 1) & 0xFFFF
            ctx.set(dut.consumed, base)
            assert not ctx.get(dut.idle)
            await ctx.tick().repeat(REPORTED)
            assert sent == [(Opcode.CREDIT, 1, 0, base)] and ctx.get(dut.idle)
            sent.clear()

    bench_of(script)


def test_reports_of_other_packets_save_credits():
    async def script(ctx, dut, sent):
        async def report(credit):
            ctx.set(dut.reported, {"valid": 1, "value": credit})
            await ctx.tick()
            ctx.set(dut.reported, {"valid": 0, "value": 0x5555})

        for consumed in range(1, 10 * QUARTER):
            ctx.set(dut.consumed, consumed)
            await report(consumed - 1)
        assert not sent and ctx.get(dut.counters.credits) == 0
        told = 10 * QUARTER - 2
        ctx.set(dut.consumed, told + QUARTER)
        await ctx.tick().repeat(REPORTED)
        assert not sent
        ctx.set(dut.consumed, told + QUARTER + 1)
        await ctx.tick().repeat(REPORTED)
        assert [s[3] for s in sent] == [told + QUARTER + 1]
        # A report older than the last credit sent causes no second credit.
        await report(told)
        await report(told + 1)
        await ctx.tick().repeat(REPORTED)
        assert len(sent) == 1 and ctx.get(dut.idle) and ctx.get(dut.counters.credits) == 1

    bench_of(script)


def test_errors_carry_the_credit():
    async def script(ctx, dut, sent):
        ctx.set(dut.payload.ready, 1)
        ctx.set(dut.consumed, QUARTER)
        await sender(dut.errors, [error(random.Random(1))])(ctx)
        await ctx.tick().repeat(REPORTED)
        ctx.set(dut.consumed, 2 * QUARTER)
        await ctx.tick().repeat(REPORTED)
        assert sent == [(Opcode.ERRORS, 0, 1, QUARTER)]

    bench_of(script)


def test_payload_that_waits_holds_errors_but_loses_none():
    dut, headers, payloads = made(HostReporter, CONFIG), [], []
    errors = [error(random.Random(k)) for k in range(8)]

    async def late(ctx):
        await ctx.tick().repeat(50)
        assert len(headers) == 2  # as many as payloads fit in the buffer
        await receiver(dut.payload, payloads, 8)(ctx)

    simulate(dut, sender(dut.errors, errors), receiver(dut.headers, headers, 8), late)
    assert [p["data"] for p in payloads] == [value(e) for e in errors]


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 3"):
        HostReporter(3)


def test_credit_of_gradients_too():
    """Each credit is sent when it is due, and every packet contains both."""
    config = CONFIG.with_fields(training=True)
    quarter = config.gradient_credits // 4

    async def script(ctx, dut, sent):
        base = 0x10000 - 3 * quarter
        ctx.set(dut.acknowledge, base)
        await ctx.tick().repeat(REPORTED)
        sent.clear()
        # Once around 2^16.
        for _ in range(6):
            ctx.set(dut.acknowledge, (base + quarter) & 0xFFFF)
            await ctx.tick().repeat(REPORTED)
            assert ctx.get(dut.idle) and not sent
            base = (base + quarter + 1) & 0xFFFF
            ctx.set(dut.acknowledge, base)
            assert not ctx.get(dut.idle)
            await ctx.tick().repeat(REPORTED)
            assert sent == [(Opcode.CREDIT, 1, 0, 0)] and ctx.get(dut.idle)
            sent.clear()
        # A packet of another block carries the count at its departure.
        ctx.set(dut.acknowledge, (base + quarter) & 0xFFFF)
        ctx.set(dut.reported, {"valid": 1, "value": 0})
        await ctx.tick()
        ctx.set(dut.reported, {"valid": 0, "value": 0})
        base = (base + 2 * quarter) & 0xFFFF
        ctx.set(dut.acknowledge, base)
        await ctx.tick().repeat(REPORTED)
        assert not sent
        # The credit of queries does not wait for the credit of gradients, and its packet contains
        # both.
        ctx.set(dut.consumed, QUARTER + 1)
        await ctx.tick().repeat(REPORTED)
        assert sent == [(Opcode.CREDIT, 1, 0, QUARTER + 1)]
        ctx.set(dut.acknowledge, base + quarter & 0xFFFF)
        await ctx.tick().repeat(REPORTED)
        assert len(sent) == 1 and ctx.get(dut.idle)

    bench_of(script, config)


@pytest.mark.parametrize("window, rate", [(4, 0.2), (16, 0.5), (100, 0.9)])
def test_what_is_owed(window, rate):
    """Consume more than a quarter of the window without reporting it in a packet. Reports are late,
    and may be older than earlier reports."""
    dut, rng = OwedCredit(window), random.Random(window)
    told_late, count_late = dut.LATENCY["what is told", "its count"], dut.LATENCY[
        "what is consumed", "its count"]
    assert told_late == count_late == 1  # the model below relies on it

    async def bench(ctx):
        consumed, known, packets, owed, seen, quiet = 0xFF00, 0xFF00, [], False, 0, 0
        ctx.set(dut.consumed, consumed)
        ctx.set(dut.told, 1)
        await ctx.tick()
        ctx.set(dut.told, 0)
        await ctx.tick().repeat(3)
        for cycle in range(3000):
            moves = cycle % 100 < 60
            more = int(moves and rng.random() < rate)
            consumed += more
            tells = int(owed and rng.random() < 0.5)
            reports = int(bool(packets) and rng.random() < 0.2)
            value = packets.pop(0) if reports else rng.getrandbits(16)
            if tells or (moves and rng.random() < 0.05):
                packets.append(consumed)  # by another block, or by this one; it leaves later
            ctx.set(dut.consumed, consumed & 0xFFFF)
            ctx.set(dut.told, tells)
            ctx.set(dut.reported, {"valid": reports, "value": value & 0xFFFF})
            assert ctx.get(dut.owed) == owed
            idle = ctx.get(dut.idle)
            assert not (idle and owed)
            quiet = 0 if more or tells or reports else quiet + 1
            assert idle or owed or quiet < 3
            before = owed
            owed = consumed - known > window // 4 and not tells and not reports
            assert not (idle and not more and not tells and not reports and owed)
            known = max(known, consumed if tells else known, value if reports else known)
            seen += owed and not before
            await ctx.tick()
        assert seen > 10 and consumed > 1 << 16

    simulate(dut, bench)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_each_failed_peer_once_beside_refusals(stall):
    """Let peers fail in successive cycles, while errors wait."""
    config = CONFIG.with_fields(link=True, training=True)
    rng = random.Random(2)
    refused = [{"status": rng.randrange(1, 10), "step": rng.getrandbits(16)} for _ in range(20)]
    dut, headers, payloads = made(HostReporter, config), [], []
    count = len(refused) + config.nodes

    async def fail(ctx):
        await ctx.tick().repeat(5)
        for node in range(config.nodes):
            ctx.set(dut.failed, {"valid": 1, "node": node, "step": 100 + node})
            await ctx.tick()
        ctx.set(dut.failed.valid, 0)

    async def watch(ctx):
        while len(payloads) < count or len(headers) < count:
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, fail, watch, sender(dut.refused, refused, stall=stall),
             receiver(dut.headers, headers, count, stall=stall),
             receiver(dut.payload, payloads, count, stall=stall, seed=3))
    got = [p["data"] for p in payloads]
    assert all(record & 0xFFFFFFFF == 0xFFFFFFFF for record in got)
    peers = [record for record in got if record >> 48 & 0xFF == Status.PEER]
    assert [(record >> 56, record >> 32 & 0xFFFF) for record in peers] == [
        (node, 100 + node) for node in range(config.nodes)]
    assert [record for record in got if record not in peers] == [
        value({"sample": 0xFFFFFFFF} | record) for record in refused]
