"""RowBounds: every place of a row in a segment, at the bound and beside it."""

import itertools
import random

import pytest
from amaranth.hdl import Cat, Value

from rtl.bags.bounds import RowBounds
from rtl.bags.layouts import Segment
from rtl.formats import ROW_BITS
from tests.rtl.bags.words import bad_row
from tests.support import made, simulate

BOUNDS = (1, 50, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (5 << 32) + 7, (1 << ROW_BITS) - 1)
Case = tuple[dict, int, int]


def verdicts_of(cases: list[Case]) -> list[bool]:
    """Return the verdict of each case, one case per cycle."""
    dut, found = made(RowBounds), []
    inputs = Cat(Value.cast(dut.segment), dut.rows, dut.wide)

    async def bench(ctx):
        for segment, rows, wide in cases:
            ctx.set(inputs, Segment.const(segment).as_bits() | rows << Segment.size
                    | wide << Segment.size + ROW_BITS)
            await ctx.tick()
            found.append(bool(ctx.get(dut.bad)))

    simulate(dut, bench)
    return found


def places() -> list[tuple[int, int, int]]:
    """Return each first word, size and ``head`` of a segment."""
    return [(first, size, head) for first in range(8) for size in range(1, 9 - first)
            for head in range(2)]


@pytest.mark.parametrize("wide", [0, 1])
def test_each_row_of_each_segment(wide):
    """A word at the bound counts only where it is a row of the segment."""
    rng, cases = random.Random(wide), []
    lanes = 8 if wide else 16
    for (first, size, head), lane in itertools.product(places(), range(lanes)):
        held = (size - head) * lanes // 8
        keys = rng.choice([0, 1, max(0, held - 1), held, held + 1, 16, 17, 0xFFFF,
                           max(0, lane - (first + head) * lanes // 8) + rng.randrange(2)])
        rows = rng.choice(BOUNDS if wide else BOUNDS[:3])
        row = min(rows + rng.choice([-1, 0, 0, 1]), (1 << 64 if wide else 1 << 32) - 1)
        cases.append(({"words": row << 512 // lanes * lane, "first": first, "size": size,
                       "head": head, "tail": rng.randrange(2), "keys": keys}, rows, wide))
    expected = [bad_row(*case) for case in cases]
    assert verdicts_of(cases) == expected
    assert 0.05 < sum(expected) / len(expected) < 0.5


@pytest.mark.parametrize("wide", [0, 1])
def test_random_segments(wide):
    rng, cases = random.Random(10 + wide), []
    for _ in range(800):
        rows = rng.choice(BOUNDS)
        near = [rng.choice([0, rows - 1, rows - 1, rng.randrange(rows)]) for _ in range(16)]
        if rng.random() < 0.4:
            near[rng.randrange(16)] = rng.choice([rows, rows + 1, 1 << rng.randrange(32, 64)])
        words = (sum((row & (1 << 64) - 1) << 64 * k for k, row in enumerate(near[:8])) if wide else
                 sum((row & 0xFFFFFFFF) << 32 * k for k, row in enumerate(near)))
        first, size, head = rng.choice(places())
        cases.append(({"words": words, "first": first, "size": size, "head": head, "tail": 0,
                       "keys": rng.choice([rng.randrange(18), 100])}, rows, wide))
    expected = [bad_row(*case) for case in cases]
    assert verdicts_of(cases) == expected
    assert any(expected) and not all(expected)


@pytest.mark.parametrize("bit", range(ROW_BITS, 64, 3))
def test_a_bit_above_a_wide_row_is_bad(bit):
    segment = {"words": 1 << 64 * 3 + bit, "first": 2, "size": 2, "head": 1, "tail": 1, "keys": 1}
    assert verdicts_of([(segment, 100, 1), (segment | {"keys": 0}, 100, 1)]) == [True, False]


def test_the_verdict_holds_without_enable():
    dut, bad = made(RowBounds), {"words": 9, "first": 0, "size": 1, "head": 0, "tail": 1, "keys": 1}

    async def bench(ctx):
        for enable, segment, verdict in ((1, bad, 1), (0, bad | {"words": 8}, 1),
                                         (1, bad | {"words": 8}, 0), (0, bad, 0)):
            ctx.set(dut.rows, 9)
            ctx.set(dut.enable, enable)
            ctx.set(dut.segment, segment)
            await ctx.tick()
            assert ctx.get(dut.bad) == verdict

    simulate(dut, bench)
