"""The multiplier, bit for bit against numpy and SoftFloat."""

import numpy as np
import pytest

from rtl.float import PLAIN_MULTIPLIER_LATENCY, PlainMultiplier
from tests.rtl.float.cases import directed_pairs, numpy_multiply, random_factors
from tests.rtl.float.drive import drive
from tests.rtl.float.softfloat import softfloat
from tests.support import made


def check(pairs, expected):
    products = drive(made(PlainMultiplier), PLAIN_MULTIPLIER_LATENCY,
                     {"a": pairs[:, 0].tolist(), "b": pairs[:, 1].tolist()})
    for k in np.flatnonzero(np.array(products, dtype=np.uint32) != expected)[:5]:
        pytest.fail(f"{pairs[k, 0]:08x} * {pairs[k, 1]:08x} = {products[k]:08x}, "
                    f"not {expected[k]:08x}")


def test_edges_of_exponent_and_significand():
    # All of them, and the others by the hundred thousand, are in test_compiled.
    pairs = directed_pairs()[::7]
    check(pairs, numpy_multiply(pairs))


def test_random_operands():
    pairs = random_factors(2000, 5)
    check(pairs, numpy_multiply(pairs))
    check(pairs, softfloat("mul", *pairs.T))


@pytest.mark.parametrize("a, b, product", [
    (0x3F800000, 0x3F800000, 0x3F800000), (0x3F800001, 0xBF800000, 0xBF800001),
    (0x00000000, 0x80000000, 0x80000000), (0x7F800000, 0x00000000, 0x7FC00000),
    (0x7F800000, 0x80000001, 0xFF800000), (0xFF800000, 0xFF800000, 0x7F800000),
    (0x7F800001, 0x00000000, 0x7FC00000), (0xFFC12345, 0x3F800000, 0x7FC00000),
    # Ties to even, down and up.
    (0x3F800001, 0x3FC00000, 0x3FC00002), (0x3F800003, 0x3FC00000, 0x3FC00004),
    # Into the subnormals: 2^-149 is halved (a tie), and half of three of it is two (a tie).
    (0x00000001, 0x3F000000, 0x00000000), (0x00000001, 0x3F000001, 0x00000001),
    (0x00000003, 0x3F000000, 0x00000002), (0x00800000, 0x3F000000, 0x00400000),
    # Rounded up from the subnormals to the smallest normal; a subnormal made normal.
    (0x00FFFFFF, 0x3F000000, 0x00800000), (0x00000001, 0x4B800000, 0x01000000),
    # Too small for any rounding, and too large.
    (0x00000001, 0x00000001, 0x00000000), (0x80000001, 0x00000001, 0x80000000),
    (0x7F7FFFFF, 0x3F800001, 0x7F800000), (0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000),
    (0x7F000000, 0xC0000000, 0xFF800000), (0x7F7FFFFF, 0x3F7FFFFF, 0x7F7FFFFE),
    # The exponent is the largest but by the carry of the rounding.
    (0x7F7FFFFF, 0x3F800000, 0x7F7FFFFF), (0x7EFFFFFF, 0x3FFFFFFF, 0x7F7FFFFE),
])
def test_by_hand(a, b, product):
    check(np.array([[a, b], [b, a]], dtype=np.uint32), np.array([product] * 2, dtype=np.uint32))
