"""HalfConverter: every 16-bit value of both formats."""

import numpy as np
import pytest

from host.dlrm.codecs import CODECS
from rtl.float import HALF_CONVERTER_LATENCY, HalfConverter
from tests.rtl.float.drive import drive
from tests.support import made

HALVES = np.arange(1 << 16, dtype=np.uint16)


@pytest.mark.parametrize("wire", ["float16", "bfloat16"])
def test_all_values(wire):
    found = drive(made(HalfConverter), HALF_CONVERTER_LATENCY, {
        "i": HALVES.tolist(), "bfloat": [int(wire == "bfloat16")] * len(HALVES)})
    expected = CODECS[wire].decode(HALVES.view(np.uint32).reshape(1, -1), len(HALVES))
    assert np.array_equal(np.array(found, np.uint32), expected[0].view(np.uint32))


@pytest.mark.parametrize("bfloat, half, float32", [
    (0, 0x0001, 0x33800000), (0, 0x83FF, 0xB87FC000), (0, 0x0400, 0x38800000),
    (0, 0x7BFF, 0x477FE000), (0, 0xFC00, 0xFF800000), (0, 0xFC01, 0x7FC00000),
    (0, 0x8000, 0x80000000), (1, 0x8000, 0x80000000), (1, 0x0001, 0x00010000),
    (1, 0x7F80, 0x7F800000), (1, 0xFF81, 0x7FC00000)])
def test_by_hand(bfloat, half, float32):
    found = drive(made(HalfConverter), HALF_CONVERTER_LATENCY, {
        "i": [half] * 4, "bfloat": [bfloat] * 4})
    assert found[0] == float32
