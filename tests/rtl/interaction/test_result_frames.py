"""ResultFrames against a plain-Python packer, under random stalls on every side."""

import random

import pytest

from rtl.config import preset
from rtl.formats import Opcode
from rtl.interaction import ResultFrames
from tests.rtl.interaction.results import (
    frames_of,
    parsed_results,
    random_results,
    result_items,
)
from tests.rtl.network.packing import follow_time
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, receiver, sender, simulate

NEVER = 0xFFFF
STALLS = [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.5), (0.0, 0.9, 0.0), (0.3, 0.3, 0.3)]


def build(most):
    return made(ResultFrames, preset("tiny").with_fields(
        max_dimension=16, net_payload_beats=2, host_payload_beats=most))


def run(most, results, *, stall=(0.0, 0.0, 0.0), credit=0x2345):
    """Check packets and counters; the last packet is closed by timeout. Return counters, cycles."""
    dut = build(most)
    expected = frames_of(results, most)
    headers: list[dict] = []
    payload: list[dict] = []
    found: dict[str, int] = {}

    async def clock(ctx):
        # Time is constant until the end, so no packet is old before.
        ctx.set(dut.timeout, NEVER)
        ctx.set(dut.credit, credit)
        await sender(dut.i, result_items(results), stall=stall[0])(ctx)
        await ctx.tick().repeat(8)
        ctx.set(dut.time, NEVER)

    async def finish(ctx):
        await receiver(dut.payload, payload, sum(len(packet[3]) for packet in expected),
                       stall=stall[2], seed=4)(ctx)
        while len(headers) < len(expected):
            await ctx.tick()
        for _ in range(20):
            assert not ctx.get(dut.payload.valid) and not ctx.get(dut.headers.valid)
            await ctx.tick()
        assert ctx.get(dut.idle)
        found.update(counts_of(ctx, dut.counters))

    cycles = simulate(powered_up(dut), clock, finish, receiver(
        dut.headers, headers, len(expected), stall=stall[1], seed=3), limit=20_000)
    assert headers == [{"opcode": int(opcode), "destination": 0, "step": step, "count": number,
                        "credit": credit, "empty": 0, "final_beat": 0, "address": 0,
                        "status": 0,
                        "answers": number if opcode == Opcode.RESULTS else packet[0] >> 48 & 1}
                       for opcode, step, number, packet in expected]
    assert payload == [{"data": beat, "last": int(n == len(beats) - 1)}
                       for *_, beats in expected for n, beat in enumerate(beats)]
    assert parsed_results(headers, payload) == results
    assert found["packets"] == len(expected) and found["results"] == len(results)
    parts = sum(opcode == 0x26 for opcode, *_ in expected)
    assert found["parts"] == parts
    assert found["full"] + found["timeouts"] + found["changes"] == len(expected) - parts
    return found, cycles - 20


@pytest.mark.few(6)
@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("most, lengths", [
    (40, (1, 2, 13, 39, 40, 79)), (9, range(1, 30)), (2, (1, 2, 3))])
def test_results_of_any_length_and_step(most, lengths, stall):
    rng = random.Random(most)
    count, lengths = 24, list(lengths)
    chosen, steps = [], []
    while len(chosen) < count:
        repeat = rng.choice((1, 1, 2, 5, 18))
        chosen += [rng.choice(lengths)] * repeat
        steps += [rng.choice((7, 8))] * repeat
    run(most, random_results(most, chosen, steps), stall=stall)


def test_steps_are_compared_in_all_their_bits():
    """Results of a beat each, of steps a bit apart in turn."""
    steps = [step for other in a_bit_apart(0xFFFE) for step in (0xFFFE, other)]
    found, _ = run(40, random_results(1, [1] * len(steps), steps))
    assert found["packets"] == len(steps)


@pytest.mark.few(4)
@pytest.mark.parametrize("most, length, fit", [
    (64, 63, 1), (64, 32, 1), (64, 31, 2), (35, 1, 32), (36, 1, 33), (17, 1, 16), (18, 1, 16),
    (19, 1, 17), (33, 2, 16), (35, 2, 16), (36, 2, 17)])
def test_a_packet_is_as_full_as_it_gets(most, length, fit):
    results = random_results(1, [length] * (2 * fit), [5] * (2 * fit))
    assert [packet[2] for packet in frames_of(results, most)] == [fit, fit]
    found, _ = run(most, results)
    assert found["full"] == 2 and found["changes"] == found["timeouts"] == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("length", [1, 23, 64, 130])
def test_a_beat_a_cycle(length):
    results = random_results(2, [length] * (1 + 400 // length), [1] * (1 + 400 // length))
    _, cycles = run(64, results)
    sent = sum(len(packet[3]) for packet in frames_of(results, 64))
    # The first packet leaves when it is complete, the last one when it is old.
    assert sent / (cycles - 64 - 24) >= 0.97


def test_an_open_packet_leaves_by_time_and_is_not_idle():
    dut = build(64)
    first, second = random_results(3, [3, 3], [9, 9])
    headers: list[dict] = []
    payload: list[dict] = []

    async def bench(ctx):
        ctx.set(dut.timeout, 40)
        await sender(dut.i, result_items([first]))(ctx)
        await ctx.tick().repeat(30)
        assert not ctx.get(dut.idle) and not ctx.get(dut.headers.valid)
        await sender(dut.i, result_items([second])[:2])(ctx)
        await receiver(dut.headers, headers, 1)(ctx)
        await receiver(dut.payload, payload, 4)(ctx)
        await ctx.tick().repeat(4)
        # An unfinished result waits for its next beat, not for time.
        assert ctx.get(dut.idle) and counts_of(ctx, dut.counters)["timeouts"] == 1
        await ctx.tick().repeat(60)
        assert ctx.get(dut.idle) and not ctx.get(dut.headers.valid)
        await sender(dut.i, result_items([second])[2:])(ctx)
        await ctx.tick().repeat(40)
        assert not ctx.get(dut.headers.valid)
        await ctx.tick().repeat(10)
        assert ctx.get(dut.headers.valid)
        await receiver(dut.headers, headers, 2)(ctx)
        await receiver(dut.payload, payload, 8)(ctx)

    simulate(powered_up(dut), bench, background=[follow_time(dut, 0xFFFF_FFF0)])
    assert [header["count"] for header in headers] == [1, 1]
    assert parsed_results(headers, payload) == [first, second]


def test_the_credit_is_that_of_the_header():
    dut = build(17)
    results = random_results(4, [16, 16], [1, 1])
    headers: list[dict] = []
    payload: list[dict] = []

    async def bench(ctx):
        ctx.set(dut.timeout, NEVER)
        for credit, result in zip((3, 4), results):
            ctx.set(dut.credit, credit)
            await sender(dut.i, result_items([result]))(ctx)
            await receiver(dut.headers, headers, credit - 2)(ctx)
            await receiver(dut.payload, payload, 17 * (credit - 2))(ctx)

    simulate(powered_up(dut), bench)
    assert [header["credit"] for header in headers] == [3, 4]


def test_a_full_buffer_holds_up_what_comes():
    """Room for two packets: with nothing taken, no more than theirs and what moves goes in."""
    dut = build(20)
    results = random_results(5, [19] * 8, [1] * 8)
    headers: list[dict] = []
    payload: list[dict] = []
    before = []

    async def bench(ctx):
        ctx.set(dut.timeout, NEVER)
        await ctx.tick().repeat(300)
        before.append(ctx.get(dut.i.ready))
        await receiver(dut.payload, payload, 160)(ctx)

    simulate(powered_up(dut), bench, sender(dut.i, result_items(results)),
             receiver(dut.headers, headers, 8, stall=0.5))
    assert before == [0] and parsed_results(headers, payload) == results


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        ResultFrames("tiny")
