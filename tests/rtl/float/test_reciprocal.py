"""CountReciprocal: close enough to the reciprocal, from above."""

import random

from rtl.float.reciprocal import COUNT_BITS, RECIPROCAL_BITS, RECIPROCAL_LATENCY, CountReciprocal
from tests.rtl.float.drive import drive
from tests.support import made


def test_at_most_one_above_the_quotient():
    rng = random.Random(3)
    counts = [*range(1, 130), *(
        (1 << place) + near for place in range(8, COUNT_BITS) for near in (-1, 0, 1)),
        (1 << COUNT_BITS) - 1, *(rng.randrange(1, 1 << COUNT_BITS) for _ in range(500))]
    rng.shuffle(counts)
    results = drive(made(CountReciprocal), RECIPROCAL_LATENCY, {"n": counts},
                    results=("o", "exponent"))
    for n, (o, exponent) in zip(counts, results, strict=True):
        assert exponent == n.bit_length() - 1, n
        assert 0 <= o * n - (1 << exponent + RECIPROCAL_BITS) <= n, (n, o)
        assert n & (n - 1) or o == 1 << RECIPROCAL_BITS, n
