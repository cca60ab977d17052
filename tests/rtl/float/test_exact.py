"""ExactAccumulator from operations to beats."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from rtl.float.exact_accumulator import ExactAccumulator
from tests.rtl.float.cases import NAN
from tests.rtl.float.exact_cases import (
    KINDS,
    MINUS_ZERO,
    Script,
    beats_of,
    random_script,
)
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

ENTRIES = 5
LATENCY = ExactAccumulator.LATENCY["taking operation behind a term", "its first beat"]
"""Behind a term."""


def run(script: Script, split: bool, *, stall: float = 0.0, seed: int = 0) -> list[list[int]]:
    """Compare the beats with the script's; return those of each sum, in the script's order."""
    expected = [beats_of(sums, split) for _, sums in script.taken]
    dut = made(ExactAccumulator, ENTRIES, 16, split=split, lanes=script.data.shape[1])
    got: list[dict] = []
    simulate(powered_up(dut, seed), sender(dut.i, script.items(), stall=stall, seed=seed),
             receiver(dut.o, got, sum(map(len, expected)), stall=stall, seed=seed + 1),
             limit=3000)
    beats = defaultdict(list)
    for item in got:
        beats[item["meta"]].append(item["data"])
        if item["last"]:
            assert item["count"] == len(beats[item["meta"]])
    assert Counter(item["meta"] for item in got if item["last"]) == Counter(
        meta for meta, _ in script.taken)
    for (meta, sums), right in zip(script.taken, expected):
        assert beats[meta] == right, sums
    return expected


def one_by_one(*sums: list[int]) -> Script:
    """Add the terms of each of ``sums`` to the next entry, one a cycle, and take it."""
    rows = []
    for number, terms in enumerate(sums):
        for k, term in enumerate(terms):
            rows.append((number % ENTRIES, term, 1, int(k == 0), 0, 0))
        rows.append((number % ENTRIES, 0, 0, 0, 1, number))
    entry, data, add, first, take, meta = np.array(rows).T
    return Script(entry, data.astype(np.uint32)[:, None], add, first, take, meta)


BY_HAND = [
    ([MINUS_ZERO, MINUS_ZERO], MINUS_ZERO, [MINUS_ZERO]),
    ([MINUS_ZERO, 0], 0, [0]),
    ([0x3F800000, 0xBF800000], 0, [0]),
    ([0x00000001, 0x80000001, 0x80000001], 0x80000001, [0x80000001]),
    ([0x7F7FFFFF] * 3 + [0xFF7FFFFF] * 2, 0x7F7FFFFF, [0x7F7FFFFF]),
    ([0x7F7FFFFF] * 2, 0x7F800000, [0x7F7FFFFF] * 2),
    ([0xFF7FFFFF] * 3, 0xFF800000, [0xFF7FFFFF] * 3),
    ([0x7F7FFFFF, 0x72FFFFFF], 0x7F7FFFFF, [0x7F7FFFFF, 0x72FFFFFF]),
    ([0x7F7FFFFF, 0x73000000], 0x7F800000, [0x7F7FFFFF, 0x73000000]),
    # The last term is below the sum by more than any float could represent.
    ([0x7F7FFFFF, 0x00000001, 0xFF7FFFFF], 0x00000001, [0x00000001]),
    ([0x7F7FFFFF, 0x80000001], 0x7F7FFFFF, [0x7F7FFFFF, 0x80000001]),
    ([0x3F800000, 0x33800000], 0x3F800000, [0x3F800000, 0x33800000]),
    ([0x3F800000, 0x33800000, 0x00000001], 0x3F800001, [0x3F800001, 0xB3800000, 0x00000001]),
    ([0xBF800000, 0xB3800000, 0x80000001], 0xBF800001, [0xBF800001, 0x33800000, 0x80000001]),
    ([0x00800000, 0x80000001], 0x007FFFFF, [0x007FFFFF]),
    ([0x007FFFFF, 0x00000001], 0x00800000, [0x00800000]),
    ([0x7F800000, 0x3F800000, 0xFF7FFFFF], 0x7F800000, [0x7F800000]),
    ([0xFF800000, 0x7F7FFFFF, 0x7F7FFFFF], 0xFF800000, [0xFF800000]),
    ([0x7F800000, 0x3F800000, 0xFF800000], NAN, [NAN]),
    ([0x3F800000, 0x7F800001, MINUS_ZERO], NAN, [NAN]),
]
"""Terms, their sum rounded, and the list that adds up to it."""


@pytest.mark.parametrize("split", [False, True])
def test_by_hand(split):
    script = one_by_one(*(terms for terms, _, _ in BY_HAND))
    assert run(script, split) == [
        listed if split else [nearest] for _, nearest, listed in BY_HAND]


def test_carries_run_through_all_segments():
    """Terms at the borders of segments (54 places) and of chunks (27), and next to them."""
    borders = [f << 23 for f in (1, 27, 28, 54, 55, 56, 109, 110, 163, 217, 218, 254)]
    terms = [0x7F7FFFFF, 0x80000001, *borders, *(b | MINUS_ZERO for b in borders), 0xFF7FFFFF,
             0x00000001, 0x80000001, 0x80000001, 0x00000001, 0x00000001, 0x00000001]
    assert run(one_by_one(*(terms[:end + 1] for end in range(len(terms)))), False)[-1] == [1]


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("split", [False, True])
def test_random_terms(split, seed):
    run(random_script(500, ENTRIES, "power_law", list(KINDS), 1, seed), split)


@pytest.mark.few(1)
@pytest.mark.parametrize("split", [False, True])
def test_stalls(split):
    run(random_script(150, ENTRIES, "few", list(KINDS), 2, 6, take=0.3), split, stall=0.4, seed=3)


def test_order_does_not_matter():
    script = random_script(100, 1, "same", ["any_finite"], 1, 9, take=0.0)
    forward = run(script, True)
    shuffled = np.random.default_rng(1).permutation(script.data[:100, 0])
    assert run(one_by_one(shuffled.tolist()), True) == forward


@pytest.mark.parametrize("split", [False, True])
def test_latency(split):
    dut = made(ExactAccumulator, ENTRIES, 16, split=split, lanes=1)
    term, taking = one_by_one([0x3F800000]).items()

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await sender(dut.i, [term])(ctx)
        ctx.set(dut.i.payload, taking)
        ctx.set(dut.i.valid, 1)
        waited = 0
        while not ctx.get(dut.o.valid):
            ready = ctx.get(dut.i.ready)
            assert ctx.get(dut.idle) == (ready and ctx.get(dut.i.valid))
            await ctx.tick()
            if ready:
                ctx.set(dut.i.valid, 0)
            waited += 1
        assert waited == LATENCY
        await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
