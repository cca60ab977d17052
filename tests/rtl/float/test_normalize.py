"""Normalizer: a sum of the same value, as near to its highest bit as its exponent allows."""

import numpy as np

from rtl.float.normalize import SUM_BITS, Normalizer
from tests.rtl.float.drive import drive
from tests.support import made

LATENCY = 1 + Normalizer.LATENCY["sum", "shifted sum"]
"""Cycles from the exponent, which is one cycle ahead of its sum."""


def sums():
    """Return pairs of exponent and sum: every position of the highest 1 with every relevant
    exponent."""
    rng = np.random.default_rng(7)
    exponents = [*range(34), 63, 64, 100, 127, 128, 254, 255]
    pairs = [(exponent, 0) for exponent in exponents]
    for place in range(SUM_BITS):
        pairs += [(exponent, 1 << place | int(rng.integers(1 << place)))
                  for exponent in exponents]
    return [pairs[k] for k in rng.permutation(len(pairs))]


def test_value_and_distance():
    pairs = sums()
    exponents, totals = zip(*pairs)
    results = drive(made(Normalizer), LATENCY, {"exponent": exponents, "total": totals},
                    late={"total": 1}, results=("o", "last", "o_exponent"))
    for (exponent, total), (o, last, left) in zip(pairs, results, strict=True):
        distance = min(SUM_BITS - total.bit_length(), exponent) if total else None
        if distance is None:
            assert (o, left) == (0, 0), exponent
        else:
            assert (o << last, left) == (total << distance, exponent - distance), (exponent, total)
            assert last == distance % 2


def test_none_comes_a_cycle_after_the_sum():
    totals = [0, 1, 0, 1 << SUM_BITS - 1, 1 << 13, 0]
    assert drive(made(Normalizer), 1, {"total": totals}, results=("none",)) == [
        int(not total) for total in totals]
