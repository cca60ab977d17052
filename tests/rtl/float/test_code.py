"""CodeConverter, bit for bit against exact integers and a fused multiply-add in numpy."""

import numpy as np
import pytest

from rtl.float import CODE_CONVERTER_LATENCY, CodeConverter
from tests.rtl.float.code_cases import (
    EDGE_CODES,
    directed_codes,
    exact_value,
    fused_values,
    random_codes,
    twice_rounded,
)
from tests.rtl.float.drive import drive
from tests.support import made

LANES = 16


def convert(codes, scale, bias):
    """Return the values of a beat of codes per scale and bias, one beat a cycle."""
    beats = drive(made(CodeConverter), CODE_CONVERTER_LATENCY, {
        "codes": [int.from_bytes(row.tobytes(), "little") for row in codes],
        "scale": scale.tolist(), "bias": bias.tolist()})
    words = b"".join(beat.to_bytes(4 * LANES, "little") for beat in beats)
    return np.frombuffer(words, dtype="<u4").reshape(-1, LANES)


def check(codes, scale, bias, expected):
    values = convert(codes, scale, bias)
    for row, lane in np.argwhere(values != expected)[:5]:
        pytest.fail(f"{codes[row, lane]} * {scale[row]:08x} + {bias[row]:08x} = "
                    f"{values[row, lane]:08x}, not {expected[row, lane]:08x}")


def assert_exact(codes, scale, bias, expected, step):
    """Compare every ``step``-th of the expected values with integers."""
    for at in range(0, codes.size, step):
        row, lane = divmod(at, LANES)
        assert expected[row, lane] == exact_value(
            int(codes[row, lane]), int(scale[row]), int(bias[row]))


@pytest.mark.few(2)
@pytest.mark.parametrize("part", range(9))
def test_edges_of_exponent_significand_and_code(part):
    operands = [each[part::9] for each in directed_codes()]
    expected = fused_values(*operands)
    assert_exact(*operands, expected, 7)
    check(*operands, expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_operands(seed):
    operands = random_codes(2000, seed)
    expected = fused_values(*operands)
    assert_exact(*operands, expected, 7)
    # Rows that find a rounded product, and rows whose bias cancels the product.
    assert np.count_nonzero(twice_rounded(*operands) != expected) > 500
    assert np.count_nonzero(expected == 0) > 100
    check(*operands, expected)


@pytest.mark.parametrize("code, scale, bias, value", [
    # Zeros: 0 + -0 is +0, and so is x - x.
    (0, 0x3F800000, 0x80000000, 0x00000000), (0, 0xBF800000, 0x80000000, 0x80000000),
    (7, 0x80000000, 0x80000000, 0x80000000), (7, 0x80000000, 0x00000000, 0x00000000),
    (1, 0x3F800000, 0xBF800000, 0x00000000), (255, 0xBF800000, 0x437F0000, 0x00000000),
    # Code 0 returns the bias, however large the scale is.
    (0, 0x7F7FFFFF, 0x00000001, 0x00000001), (0, 0x7F7FFFFF, 0x8089ABCD, 0x8089ABCD),
    # Special operands; 255 * scale exceeds an infinite bias's 2^128 in the DSP.
    (0, 0x7F800000, 0x3F800000, 0x7FC00000), (1, 0xFF800000, 0x3F800000, 0xFF800000),
    (1, 0x7F800000, 0xFF800000, 0x7FC00000), (3, 0x7F800000, 0x7F800000, 0x7F800000),
    (255, 0x7F7FFFFF, 0xFF800000, 0xFF800000), (0, 0x3F800000, 0x7F800000, 0x7F800000),
    (0, 0x7F800001, 0x00000000, 0x7FC00000), (9, 0x3F800000, 0xFFC12345, 0x7FC00000),
    # The product exceeds the largest number, but not the sum; the next product is infinite.
    (2, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FFFFF), (2, 0x7F7FFFFF, 0xFF000000, 0x7F800000),
    (1, 0x7F7FFFFF, 0x73000000, 0x7F800000), (1, 0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
    # Subnormals are exact.
    (255, 0x00000001, 0x00000000, 0x000000FF), (255, 0x00000001, 0x80000100, 0x80000001),
    (2, 0x00400000, 0x00000000, 0x00800000), (1, 0x00800000, 0x80000001, 0x007FFFFF),
    # Ties of the product, to even and to odd's neighbour, and what a bias makes of them.
    (3, 0x3F800001, 0x00000000, 0x40400002), (3, 0x3F800003, 0x00000000, 0x40400004),
    (3, 0x3F800001, 0x00000001, 0x40400002), (3, 0x3F800001, 0x80000001, 0x40400001),
    (3, 0x3F800003, 0x80000001, 0x40400004), (3, 0x3F800003, 0x00000001, 0x40400005),
    # A product beside half the last place of a larger bias.
    (1, 0x43000000, 0x4F000000, 0x4F000000), (1, 0x43000001, 0x4F000000, 0x4F000001),
    (1, 0x43000000, 0x4F000001, 0x4F000002), (1, 0x42FFFFFF, 0x4F000001, 0x4F000001),
    # The bias cancels all of a product of 31 bits but the last ones.
    (255, 0x3F800001, 0xC37F0000, 0x37FF0000),
])
def test_by_hand(code, scale, bias, value):
    assert value == exact_value(code, scale, bias)
    operands = (np.full((1, LANES), code, np.uint8), np.array([scale], np.uint32),
                np.array([bias], np.uint32))
    check(*operands, np.full((1, LANES), value, np.uint32))


def test_each_lane_has_its_own_code():
    operands = (np.stack([np.roll(EDGE_CODES, turn) for turn in range(LANES)]),
                np.full(LANES, 0x3F800000, np.uint32), np.zeros(LANES, np.uint32))
    check(*operands, operands[0].astype(np.float32).view(np.uint32))
