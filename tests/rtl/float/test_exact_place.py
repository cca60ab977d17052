"""ExactPlacer: the position of each float32 in the segments."""

import numpy as np

from host.dlrm.exact import sums_of_bits
from rtl.float.exact import SEGMENT_BITS
from rtl.float.exact_place import EXACT_PLACER_LATENCY, PLACED, ExactPlacer
from tests.rtl.float.cases import SPECIAL
from tests.rtl.float.drive import drive
from tests.support import made


def test_every_exponent_and_edge():
    rng = np.random.default_rng(0)
    exponents = np.arange(256, dtype=np.uint32) << np.uint32(23)
    operands = np.concatenate([
        SPECIAL, exponents, exponents | rng.integers(0, 1 << 23, 256, dtype=np.uint32),
        rng.integers(0, 1 << 32, 500, dtype=np.uint32)])
    operands = np.concatenate([operands, operands ^ np.uint32(1 << 31)]).tolist()
    for bits, word in zip(operands, drive(
            made(ExactPlacer), EXACT_PLACER_LATENCY, {"i": operands}), strict=True):
        placed = PLACED.from_bits(word)
        value = placed.bits << SEGMENT_BITS * placed.segment
        expected = sums_of_bits([bits])
        assert (-value if placed.negative else value) == expected.value, hex(bits)
        assert [placed.plus, placed.minus, placed.other] == [
            expected.plus, expected.minus, expected.other], hex(bits)
