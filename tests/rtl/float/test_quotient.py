"""The divider, bit for bit against numpy and SoftFloat."""

import numpy as np
import pytest

from rtl.float import FLOAT_DIVIDER_LATENCY, FloatDivider
from tests.rtl.float.cases import directed_pairs, numpy_quotient, random_ratios
from tests.rtl.float.drive import drive
from tests.rtl.float.softfloat import softfloat
from tests.support import made


def check(pairs, expected):
    quotients = drive(made(FloatDivider), FLOAT_DIVIDER_LATENCY,
                      {"a": pairs[:, 0].tolist(), "b": pairs[:, 1].tolist()})
    for k in np.flatnonzero(np.array(quotients, dtype=np.uint32) != expected)[:5]:
        pytest.fail(f"{pairs[k, 0]:08x} / {pairs[k, 1]:08x} = {quotients[k]:08x}, "
                    f"not {expected[k]:08x}")


def test_edges_of_exponent_and_significand():
    # All of them, and the others by the hundred thousand, are in test_compiled.
    pairs = directed_pairs()[::11]
    check(pairs, numpy_quotient(pairs))


def test_random_operands():
    pairs = random_ratios(1600, 5)
    check(pairs, numpy_quotient(pairs))
    check(pairs[:800], softfloat("div", *pairs[:800].T))


@pytest.mark.parametrize("a, b, quotient", [
    (0x3F800000, 0x40400000, 0x3EAAAAAB), (0xBF800000, 0x40400000, 0xBEAAAAAB),
    (0x3F800000, 0xBF800000, 0xBF800000), (0x40C00000, 0x40400000, 0x40000000),
    # Zeros and infinities, and what comes of both.
    (0x00000000, 0x80000001, 0x80000000), (0x80000000, 0x7F800000, 0x80000000),
    (0x3F800000, 0x80000000, 0xFF800000), (0x7F800000, 0x00000000, 0x7F800000),
    (0x00000000, 0x00000000, 0x7FC00000), (0xFF800000, 0x7F800000, 0x7FC00000),
    (0x7F7FFFFF, 0xFF800000, 0x80000000), (0xFF800000, 0x00000001, 0xFF800000),
    (0x7F800001, 0x3F800000, 0x7FC00000), (0x00000000, 0xFFC12345, 0x7FC00000),
    (0x7FC00000, 0x00000000, 0x7FC00000),
    # Ties among the subnormals: halves of 1, 3 and 5 of the smallest one.
    (0x00000001, 0x40000000, 0x00000000), (0x00000003, 0x40000000, 0x00000002),
    (0x00000005, 0x40000000, 0x00000002), (0x00000001, 0x3FFFFFFF, 0x00000001),
    (0x00FFFFFF, 0x40000000, 0x00800000), (0x00FFFFFD, 0x40000000, 0x007FFFFE),
    # Subnormals by each other and into the largest; too large, and too small.
    (0x00000001, 0x00000001, 0x3F800000), (0x00000003, 0x00000001, 0x40400000),
    (0x00800000, 0x00000001, 0x4B000000), (0x007FFFFF, 0x00000001, 0x4AFFFFFE),
    (0x7F7FFFFF, 0x00000001, 0x7F800000), (0x7F7FFFFF, 0x3F7FFFFF, 0x7F800000),
    (0x7F7FFFFE, 0x3F7FFFFF, 0x7F7FFFFF), (0x00000001, 0x7F7FFFFF, 0x00000000),
    (0x00800000, 0x7F7FFFFF, 0x00000000), (0x00800000, 0x3F7FFFFF, 0x00800001),
])
def test_by_hand(a, b, quotient):
    check(np.array([[a, b]], dtype=np.uint32), np.array([quotient], dtype=np.uint32))
