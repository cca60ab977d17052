"""Division by a count, bit for bit against numpy."""

import numpy as np
import pytest

from rtl.float import COUNT_DIVIDER_LATENCY, CountDivider
from rtl.float.reciprocal import RECIPROCAL_LATENCY, CountReciprocal
from tests.rtl.float.cases import SPECIAL, numpy_divide, random_quotients
from tests.rtl.float.drive import drive
from tests.support import made

LANES = 16


def divide(x, n):
    """Return the quotients of ``x`` [beats, 16] by ``n`` [beats], one beat a cycle."""
    beats = [int.from_bytes(row.tobytes(), "little") for row in x]
    results = drive(made(CountDivider), COUNT_DIVIDER_LATENCY, {"x": beats, "n": n.tolist()})
    words = b"".join(result.to_bytes(4 * LANES, "little") for result in results)
    return np.frombuffer(words, dtype="<u4").reshape(-1, LANES)


def check(x, n, expected):
    quotients = divide(x, n)
    for beat, lane in np.argwhere(quotients != expected)[:5]:
        pytest.fail(f"{x[beat, lane]:08x} / {n[beat]} = {quotients[beat, lane]:08x}, "
                    f"not {expected[beat, lane]:08x}")


def test_random_quotients():
    x, n = random_quotients(100, 6)
    check(x, n, numpy_divide(x, n))


def test_edges_by_small_and_large_counts():
    n = np.array([1, 2, 3, 7, 24, 39, 100, 32767, 32768, 65535] * 5, dtype=np.uint32)
    x = np.resize(SPECIAL, (len(n) // 10, LANES)).repeat(10, axis=0)
    check(x, n, numpy_divide(x, n))


@pytest.mark.parametrize("x, n, quotient", [
    (0x40400000, 3, 0x3F800000), (0xBF800000, 3, 0xBEAAAAAB), (0x3F800000, 32768, 0x38000000),
    (0x00000000, 5, 0x00000000), (0x80000000, 5, 0x80000000), (0x7F800000, 9, 0x7F800000),
    (0xFF800000, 9, 0xFF800000), (0x7F800001, 1, 0x7FC00000), (0x7F7FFFFF, 1, 0x7F7FFFFF),
    # Ties among the subnormals: 1/2 and 3/2 and 5/2 of the smallest one.
    (0x00000001, 2, 0x00000000), (0x00000003, 2, 0x00000002), (0x00000005, 2, 0x00000002),
    (0x80000001, 2, 0x80000000), (0x00000002, 3, 0x00000001), (0x00000001, 3, 0x00000000),
    (0x00FFFFFF, 2, 0x00800000), (0x00800000, 32768, 0x00000100),
])
def test_by_hand(x, n, quotient):
    check(np.full((1, LANES), x, dtype=np.uint32), np.array([n], dtype=np.uint32),
          np.full((1, LANES), quotient, dtype=np.uint32))


def test_reciprocal_is_off_by_one_at_most():
    counts = sorted({*range(1, 600), *range(1, 1 << 16, 97), *(1 << k for k in range(16)), 65535})
    results = drive(made(CountReciprocal), RECIPROCAL_LATENCY, {"n": counts},
                    results=("o", "exponent"))
    for n, (reciprocal, exponent) in zip(counts, results):
        assert exponent == n.bit_length() - 1
        assert 0 <= reciprocal * n - (1 << (exponent + 42)) <= n
