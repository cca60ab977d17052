"""The square root, bit for bit against numpy."""

import numpy as np
import pytest

from rtl.float import FLOAT_ROOT_LATENCY, FloatRoot
from tests.rtl.float.cases import SPECIAL, numpy_root, random_squares
from tests.rtl.float.drive import drive
from tests.support import made


def check(operands, expected):
    roots = drive(made(FloatRoot), FLOAT_ROOT_LATENCY, {"i": operands.tolist()})
    for k in np.flatnonzero(np.array(roots, dtype=np.uint32) != expected)[:5]:
        pytest.fail(f"root of {operands[k]:08x} = {roots[k]:08x}, not {expected[k]:08x}")


def test_edges_of_exponent_and_significand():
    operands = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31)])
    check(operands, numpy_root(operands))


def test_random_operands():
    operands = random_squares(3000, 5)
    check(operands, numpy_root(operands))


@pytest.mark.parametrize("operand, root", [
    (0x40800000, 0x40000000), (0x41100000, 0x40400000), (0x40000000, 0x3FB504F3),
    (0x3F800000, 0x3F800000), (0x3F000000, 0x3F3504F3), (0x3F7FFFFF, 0x3F7FFFFF),
    (0x00000000, 0x00000000), (0x80000000, 0x80000000), (0x7F800000, 0x7F800000),
    (0xFF800000, 0x7FC00000), (0x80000001, 0x7FC00000), (0xBF800000, 0x7FC00000),
    (0x7F800001, 0x7FC00000), (0xFFC12345, 0x7FC00000),
    # Of the smallest, the largest and the last subnormal; just below 4 and just above 1.
    (0x00000001, 0x1A3504F3), (0x7F7FFFFF, 0x5F7FFFFF), (0x007FFFFF, 0x1FFFFFFF),
    (0x00000002, 0x1A800000), (0x407FFFFF, 0x3FFFFFFF), (0x3F800001, 0x3F800000),
    (0x3F800003, 0x3F800001),
])
def test_by_hand(operand, root):
    check(np.array([operand], dtype=np.uint32), np.array([root], dtype=np.uint32))
