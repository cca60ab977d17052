"""Recoder: every operand keeps its value, normalised."""

import math

import numpy as np
import pytest
from amaranth.lib import data

from rtl.float import RECODED, RECODER_LATENCY, Recoder
from tests.rtl.float.cases import SIGN, SPECIAL
from tests.rtl.float.drive import drive
from tests.support import made


def recode(values):
    results = drive(made(Recoder), RECODER_LATENCY, {"i": [int(value) for value in values]})
    return [data.Const(RECODED, result) for result in results]


def operands():
    rng = np.random.default_rng(3)
    subnormal = rng.integers(1, 1 << 23, 500, dtype=np.uint32)
    subnormal >>= rng.integers(0, 23, 500, dtype=np.uint32)
    single = np.uint32(1) << np.arange(23, dtype=np.uint32)
    return np.concatenate([SPECIAL, SPECIAL | SIGN, single, subnormal,
                           rng.integers(0, 1 << 32, 500, dtype=np.uint32)])


def test_value_sign_and_class():
    bits = operands()
    for value, recoded in zip(bits.view(np.float32).tolist(), recode(bits), strict=True):
        assert recoded.nan == math.isnan(value)
        assert recoded.infinite == math.isinf(value)
        if math.isnan(value):
            continue
        assert recoded.sign == (math.copysign(1, value) < 0)
        if not math.isinf(value):
            magnitude = math.ldexp((1 << 23) + recoded.fraction, recoded.exponent + 64 - 150)
            assert magnitude == abs(value) if value else recoded.exponent == -256


@pytest.mark.parametrize("bits, fraction, exponent", [
    (0x3F800000, 0, 127 - 64), (0x00800000, 0, 1 - 64), (0x00400000, 0, -64),
    (0x007FFFFF, 0x7FFFFE, -64), (0x00000003, 0x400000, -21 - 64), (0x00000001, 0, -86),
    (0x7F7FFFFF, 0x7FFFFF, 190), (0x80000000, 0, -256),
])
def test_by_hand(bits, fraction, exponent):
    recoded, = recode([bits])
    assert (recoded.fraction, recoded.exponent) == (fraction, exponent)
    assert (recoded.sign, recoded.infinite, recoded.nan) == (bits >> 31, 0, 0)
