"""ExactRounder, at every position of the leading bit and around every tie."""

import random

import pytest

from host.dlrm.exact import ExactSum, nearest, taken
from rtl.float.exact_round import EXACT_ROUNDER_LATENCY, ExactRounder
from tests.rtl.float.drive import drive
from tests.rtl.float.exact_cases import exact_word
from tests.support import made

_SIGNIFICANDS = (1 << 23, (1 << 23) + 1, (1 << 24) - 1, (1 << 24) - 2)


def around_ties(seed: int) -> list[ExactSum]:
    """Return sums with the leading bit at each position, and the rest at, above or below a tie."""
    rng = random.Random(seed)
    values = [0, -1, 1, (1 << 297) - 1, -1 << 297]
    for place in range(297):
        low = max(0, place - 23)
        for below in ("none", "one", "less", "half", "more", "all", "any"):
            significand = rng.choice((*_SIGNIFICANDS, rng.randrange(1 << 23, 1 << 24)))
            rest = {"none": 0, "one": 1, "less": (1 << low) // 2 - 1, "half": (1 << low) // 2,
                    "more": (1 << low) // 2 + 1, "all": (1 << low) - 1,
                    "any": rng.randrange(1 << low)}[below]
            value = (significand >> 23 - min(23, place)) << low | max(0, rest) & (1 << low) - 1
            values.append(rng.choice((value, -value)))
    return [ExactSum(value, other=True) for value in values]


SPECIAL_SUMS = [
    ExactSum(), ExactSum(other=True), ExactSum(5, plus=True, other=True),
    ExactSum(-5, minus=True, other=True), ExactSum(1 << 290, plus=True, minus=True, other=True),
    ExactSum((1 << 290) + (1 << 260), minus=True, other=True),
    ExactSum((-1 << 290) - (1 << 200), plus=True, other=True)]


@pytest.mark.parametrize("seed", [0, 1])
def test_rounds_once(seed):
    sums = around_ties(seed) + SPECIAL_SUMS
    got = drive(made(ExactRounder, rest=False), EXACT_ROUNDER_LATENCY,
                {"i": [exact_word(total) for total in sums]})
    for total, bits in zip(sums, got, strict=True):
        assert bits == nearest(total), f"{total} gave {bits:08x}, not {nearest(total):08x}"


def test_first_of_a_list_and_whether_it_is_the_last():
    sums = around_ties(2)[::3] + SPECIAL_SUMS
    got = drive(made(ExactRounder, rest=True), EXACT_ROUNDER_LATENCY,
                {"i": [exact_word(total) for total in sums], "enter": [1] * len(sums)},
                results=("o", "done"), early={"done": 2})
    for total, found in zip(sums, got, strict=True):
        term, left = taken(total)
        assert found == (term, left.value == 0), f"{total} gave {found[0]:08x}, not {term:08x}"


def test_what_is_left_around_the_end_of_the_range():
    """From 2^128 on something is left of any sum, and from the tie below it."""
    end = 1 << 277
    edges = [sign * (at + more) for sign in (1, -1)
             for at in (end, end - (1 << 252), end - (1 << 253), end - (1 << 254), end >> 1,
                        end + (1 << 254), end << 1, (1 << 297) - (1 << 273))
             for more in (0, 1, -1, 1 << 252, 1 << 100)]
    sums = [ExactSum(value, other=True) for value in edges]
    got = drive(made(ExactRounder, rest=True), EXACT_ROUNDER_LATENCY,
                {"i": [exact_word(total) for total in sums], "enter": [1] * len(sums)},
                results=("o", "done"), early={"done": 2})
    for total, found in zip(sums, got, strict=True):
        term, left = taken(total)
        assert found == (term, left.value == 0), f"{total} gave {found}, not {term:08x}"


def test_a_sum_that_is_held_stays():
    """Eight sums go round four times; they are held in the first turn, and in the third."""
    sums = [*SPECIAL_SUMS, ExactSum(-(1 << 277) + (1 << 252), other=True)]
    turn = EXACT_ROUNDER_LATENCY
    words = [exact_word(total) for total in sums]
    got = drive(
        made(ExactRounder, rest=True), turn,
        {"i": words + [0] * 3 * turn, "enter": [1] * turn + [0] * 3 * turn,
         "hold": ([1] * turn + [0] * turn) * 2}, late={"hold": 5}, results=("o", "done"),
        early={"done": 2})
    for number, total in enumerate(sums):
        for k in range(4):
            term, left = taken(total)
            assert got[k * turn + number] == (term, left.value == 0), (total, k)
            if k % 2:
                total = left
