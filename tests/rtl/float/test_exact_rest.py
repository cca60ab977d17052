"""ExactRest: the remainder of a sum after the output number, in integers."""

import random

from host.dlrm.exact import ExactSum
from rtl.float.exact import CHUNK_BITS, CHUNKS
from rtl.float.exact_rest import ExactRest
from tests.rtl.float.drive import drive
from tests.rtl.float.exact_cases import exact_word
from tests.rtl.float.test_exact_round import around_ties
from tests.support import made

LATE = {"lead": 2, "below": 2, "shift": 2, "hold": 2, "up": 3, "over": 4, "i": 5, "enter": 5}
"""Cycles from the sum, which arrives in stage 3, to the other inputs."""

LARGEST = (1 << 24) - 1 << 253
NEW = ExactSum(-12345 << 100, plus=True, other=True)


def place_of(value: int) -> int:
    """Return the position of the highest bit of a significand, which is subnormal below 23."""
    return max(23, (value if value >= 0 else ~value).bit_length() - 1)


def run(sums: list[ExactSum], **flags) -> list[int]:
    """Return the remainders of ``sums``; flags are lists, or one value for all, 0 by default."""
    places = [place_of(total.value) for total in sums]
    columns = {
        "x": [exact_word(total) for total in sums],
        "lead": [1 << place // CHUNK_BITS for place in places],
        "below": [(1 << place // CHUNK_BITS) // 2 - (place >= CHUNK_BITS) for place in places],
        "shift": [CHUNK_BITS - 1 - place % CHUNK_BITS for place in places],
        "i": [exact_word(NEW)] * len(sums)}
    for name in ("hold", "up", "over", "enter"):
        value = flags.get(name, 0)
        columns[name] = value if isinstance(value, list) else [value] * len(sums)
    return drive(made(ExactRest), 5, columns, late=LATE)


def test_the_bits_below_the_significand():
    """They are the sum less its leading bits; or less the next number above these."""
    sums, rng = around_ties(3), random.Random(4)
    assert {place_of(total.value) // CHUNK_BITS for total in sums} == set(range(CHUNKS))
    up = [rng.randrange(2) for _ in sums]
    for total, above, left in zip(sums, up, run(sums, up=up), strict=True):
        unit = 1 << place_of(total.value) - 23
        right = total.value % unit - above * unit
        assert left == exact_word(ExactSum(right, other=True)), (total, above)


def test_the_largest_number_is_taken_away():
    rng = random.Random(5)
    sums = [ExactSum(sign * (LARGEST + more), other=True) for sign in (1, -1) for more in (
        0, 1, 1 << 252, 1 << 253, LARGEST, *(rng.randrange(1 << 296) for _ in range(60)))]
    for total, left in zip(sums, run(sums, over=1), strict=True):
        right = total.value - (LARGEST if total.value > 0 else -LARGEST)
        assert left == exact_word(ExactSum(right, other=True)), total


def test_held_sums_stay_and_new_ones_enter():
    rng = random.Random(6)
    sums = [ExactSum(rng.randrange(-1 << 297, 1 << 297) >> rng.randrange(297),
                     plus=rng.random() < 0.3, minus=rng.random() < 0.3, other=rng.random() < 0.7)
            for _ in range(200)]
    noise = {name: [rng.randrange(2) for _ in sums] for name in ("up", "over")}
    assert run(sums, hold=1, **noise) == [exact_word(total) for total in sums]
    noise["hold"] = [rng.randrange(2) for _ in sums]
    assert run(sums, enter=1, **noise) == [exact_word(NEW)] * len(sums)


def test_an_infinity_has_no_remainder_but_its_flags_are_gone():
    sums = [ExactSum(7, plus=True, other=True), ExactSum(-7, minus=True, other=True),
            ExactSum(1 << 200, plus=True, minus=True, other=True)]
    for left in run(sums):
        assert left >> 298 == 0b100
