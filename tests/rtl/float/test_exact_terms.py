"""ExactTerms: lists of float32 that add up to sums, and single ones."""

import random
from collections import defaultdict

import pytest

from host.dlrm.exact import ExactSum, taken
from rtl.float.exact_terms import ExactTerms
from tests.rtl.float.exact_cases import beats_of, exact_word
from tests.rtl.float.test_exact_round import SPECIAL_SUMS, around_ties
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

RING = ExactTerms.LATENCY["beat of an entry", "its next beat"]
LATENCY = ExactTerms.LATENCY["sums of an entry, with their last lanes", "its first beat"]
LIMIT = 3000


def payloads(entries: list[list[ExactSum]], units: int | None = None) -> list[dict]:
    lanes = len(entries[0])
    units = units or lanes
    return [{"lanes": [_fields(exact_word(total)) for total in sums[part:part + units]],
             "meta": number}
            for number, sums in enumerate(entries) for part in range(0, lanes, units)]


def _fields(word: int) -> dict:
    return {"value": word & (1 << 298) - 1, "plus": word >> 298 & 1, "minus": word >> 299 & 1,
            "other": word >> 300}


def run(entries: list[list[ExactSum]], split: bool, stall: float = 0.0, *,
        rounded: bool = False, units: int | None = None, slow: float = 0.0) -> int:
    """Compare the beats of ``entries``; return the number of cycles."""
    expected = [beats_of(sums, split and not rounded) for sums in entries]
    dut = made(ExactTerms, 16, split=split, lanes=len(entries[0]), units=units)
    got: list[dict] = []
    rng = random.Random(1)

    async def send(ctx):
        if rounded:
            ctx.set(dut.rounded, 1)
        # The parts of a sum arrive without a gap, sums at any time.
        parts = payloads(entries, units)
        turns = len(parts) // len(entries)
        for first in range(0, len(parts), turns):
            while rng.random() < stall:
                await ctx.tick()
            await sender(dut.sums, parts[first:first + turns])(ctx)

    cycles = simulate(
        powered_up(dut), send,
        receiver(dut.o, got, sum(map(len, expected)), stall=max(stall, slow)), limit=LIMIT)
    beats = defaultdict(list)
    for item in got:
        beats[item["meta"]].append(item["data"])
        assert item["count"] == len(beats[item["meta"]])
        assert item["last"] == (len(beats[item["meta"]]) == len(expected[item["meta"]]))
    for number, sums in enumerate(entries):
        assert beats[number] == expected[number], sums
    if rounded or not split:
        assert [item["meta"] for item in got] == list(range(len(entries)))
    return cycles


@pytest.mark.few(2)
@pytest.mark.parametrize("split, rounded, lanes, units", [
    (False, False, 4, 1), (True, True, 2, 1), (True, False, 2, 1)])
def test_fewer_units_than_lanes(split, rounded, lanes, units):
    """Lists of many lengths, beside each other and one after the other, as fast as they can."""
    rng = random.Random(lanes)
    sums = in_range(SPECIAL_SUMS) + in_range(around_ties(3))[::40] + [
        ExactSum(rng.getrandbits(bits) - (1 << bits - 1), other=True) for bits in range(60, 270, 7)]
    entries = [[rng.choice(sums) for _ in range(lanes)] for _ in range(25)]
    for stall in (0.0, 0.4):
        run(entries, split, stall, rounded=rounded, units=units)
    # The largest number of beats waits for the sink.
    run(entries * 2, split, rounded=rounded, units=units, slow=0.8)
    ones = [[ExactSum(1 << 149, other=True)] * lanes for _ in range(30)]
    turns = lanes // units
    assert run(ones, split, rounded=rounded, units=units) <= 30 * turns + LATENCY + RING
    if split and not rounded:
        two = ExactSum((1 << 200) + (1 << 100), other=True)
        cycles = run([[two] * lanes for _ in range(16)], split, units=units)
        assert cycles <= 32 * turns + LATENCY + RING


def in_range(sums: list[ExactSum]) -> list[ExactSum]:
    """Return the sums that need at most four of the largest number."""
    return [total for total in sums if abs(total.value) < 1 << 279]


@pytest.mark.few(2)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("split", [False, True])
def test_sums_around_ties(split, stall):
    sums = in_range(around_ties(3))[::9]
    random.Random(4).shuffle(sums)
    run([[total] for total in in_range(SPECIAL_SUMS) + sums], split, stall)


@pytest.mark.parametrize("split", [False, True])
def test_lanes_that_are_finished_wait(split):
    """Lanes of one entry need lists of different lengths."""
    rng = random.Random(5)
    one, two = ExactSum(1 << 149, other=True), ExactSum((1 << 200) + (1 << 100), other=True)
    long = ExactSum(rng.getrandbits(276) | 1, other=True)
    entries = [[one, one, two], [two, ExactSum(), one], [long, ExactSum(other=True), one],
               [ExactSum(), ExactSum(5, plus=True, other=True), two],
               [ExactSum(1, plus=True, minus=True, other=True), long, ExactSum()]]
    run(entries, split)


@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_sums_beyond_the_largest_number(stall):
    largest = ((1 << 24) - 1) << 253
    sums = [sign * (n * largest + more) for sign in (1, -1) for n, more in (
        (1, 1 << 253), (1, 1 << 252), (1, (1 << 252) - 1), (2, 0), (3, -1), (5, 1 << 200),
        (7, -(1 << 277)))]
    run([[ExactSum(value, other=True)] for value in sums * 2], True, stall)
    sums += [(1 << 297) - 1, -1 << 297]
    run([[ExactSum(value, other=True)] for value in sums], False, stall)


def test_lists_can_be_left_out():
    """With ``rounded`` each entry gives its nearest float32 alone, one a cycle, in order."""
    sums = in_range(around_ties(6))[::9] + SPECIAL_SUMS
    sums += [ExactSum(value, other=True) for value in ((1 << 297) - 1, -1 << 297, 1 << 277)]
    entries = [[total] for total in sums]
    run(entries, True, 0.4, rounded=True)
    assert run(entries, True, rounded=True) <= len(sums) + LATENCY + RING


def test_the_largest_sums_go_on():
    """Sums that take a million beats begin with the right ones."""
    sums = [(1 << 297) - 1, -1 << 297, -(1 << 297) + 1]
    dut, got = made(ExactTerms, 16, split=True, lanes=1), []
    simulate(powered_up(dut), sender(dut.sums, payloads([
        [ExactSum(value, other=True)] for value in sums])), receiver(dut.o, got, 30), limit=LIMIT)
    for number, value in enumerate(sums):
        total = ExactSum(value, other=True)
        items = [item for item in got if item["meta"] == number]
        assert len(items) > 5
        for item in items:
            term, total = taken(total)
            assert (item["data"], item["last"]) == (term, 0)


def test_a_beat_a_cycle():
    one = [ExactSum(1 << 149, other=True)]
    two = [ExactSum((1 << 200) + (1 << 100), other=True)]
    for split, entries in ((False, [one, two] * 50), (True, [one] * 100), (True, [two] * 50)):
        assert run(entries, split) <= 100 + LATENCY + RING


@pytest.mark.parametrize("split", [False, True])
def test_latency(split):
    dut = made(ExactTerms, 16, split=split, lanes=1)
    total = ExactSum((1 << 200) + (1 << 100), other=True)

    async def bench(ctx):
        ctx.set(dut.sums.valid, 1)
        ctx.set(dut.sums.payload, payloads([[total]])[0])
        ctx.set(dut.o.ready, 1)
        assert ctx.get(dut.sums.ready)
        await ctx.tick()
        ctx.set(dut.sums.valid, 0)
        seen = []
        for cycle in range(1, LATENCY + RING + 3):
            assert not ctx.get(dut.idle) or len(seen) == 1 + split
            if ctx.get(dut.o.valid):
                seen.append(cycle)
            await ctx.tick()
        assert seen == [LATENCY, LATENCY + RING][:1 + split]
        assert ctx.get(dut.idle)

    simulate(dut, bench)


@pytest.mark.parametrize("arguments, said", [
    ({"lanes": 0}, "lanes must be an integer between 1 and 16, not 0"),
    ({"lanes": 6, "units": 2}, r"units must be lanes \(6\) divided by 1, 2, 4 or 8, not 2"),
    ({"lanes": 2, "units": True}, "units must be lanes .* not True"),
    ({"lanes": 16, "units": 4}, "units must be at least half the lanes, 16, to split, not 4")])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        ExactTerms(16, split=True, **arguments)
