"""FloatAdder, bit for bit against numpy and SoftFloat."""

import numpy as np
import pytest

from rtl.float import FLOAT_ADDER_LATENCY, FloatAdder
from tests.rtl.float.cases import directed_pairs, numpy_add, random_pairs
from tests.rtl.float.drive import drive
from tests.rtl.float.softfloat import softfloat
from tests.rtl.float.vector_top import AdderTop
from tests.support import made, receiver, sender, simulate


def add(pairs, keep=0):
    """Return the adder's sums of ``pairs``, one pair a cycle."""
    sums = drive(made(FloatAdder), FLOAT_ADDER_LATENCY, {
        "a": pairs[:, 0].tolist(), "b": pairs[:, 1].tolist(), "keep": [keep] * len(pairs)})
    return np.array(sums, dtype=np.uint32)


def check(pairs, sums, expected):
    for k in np.flatnonzero(sums != expected)[:5]:
        pytest.fail(f"{pairs[k, 0]:08x} + {pairs[k, 1]:08x} = {sums[k]:08x}, "
                    f"not {expected[k]:08x}")


@pytest.mark.few(2)
@pytest.mark.parametrize("part", range(4))
def test_edges_of_exponent_and_significand(part):
    pairs = directed_pairs()[part::4]
    check(pairs, add(pairs), numpy_add(pairs))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_operands(seed):
    pairs = random_pairs(5000, seed)
    sums = add(pairs)
    check(pairs, sums, numpy_add(pairs))
    check(pairs, sums, softfloat("add", *pairs.T))


def test_keep_gives_back_every_bit():
    pairs = np.concatenate([directed_pairs()[::3], random_pairs(1000, 9)])
    pairs[::50, 0] = 0x7F800001  # a signalling NaN
    pairs[:, 1] = 1 << 31
    check(pairs, add(pairs, keep=1), pairs[:, 0])


@pytest.mark.parametrize("a, b, total", [
    (0x00000000, 0x80000000, 0x00000000), (0x80000000, 0x80000000, 0x80000000),
    (0x3F800000, 0xBF800000, 0x00000000), (0xBF800000, 0x3F800000, 0x00000000),
    (0x7F800000, 0xFF800000, 0x7FC00000), (0xFFC12345, 0x3F800000, 0x7FC00000),
    (0x00800000, 0x80000001, 0x007FFFFF), (0x007FFFFF, 0x00000001, 0x00800000),
    (0x3F800000, 0x33800000, 0x3F800000), (0x3F800001, 0x33800000, 0x3F800002),
    (0x3F800000, 0x33800001, 0x3F800001), (0x3F800000, 0xB3000000, 0x3F800000),
    (0x7F7FFFFF, 0x73000000, 0x7F800000), (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
    (0xFF7FFFFF, 0xFF7FFFFF, 0xFF800000), (0x3F800000, 0x00000000, 0x3F800000),
    (0x7F000000, 0x00000001, 0x7F000000),
])
def test_by_hand(a, b, total):
    pairs = np.array([[a, b], [b, a]], dtype=np.uint32)
    check(pairs, add(pairs), np.array([total] * 2, dtype=np.uint32))


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_lanes_of_a_beat(stall):
    dut, taken = made(AdderTop), []
    pairs = random_pairs(16 * 60, 7)
    beats = [{"a": int.from_bytes(p[:, 0].tobytes(), "little"),
              "b": int.from_bytes(p[:, 1].tobytes(), "little"), "keep": 0}
             for p in pairs.reshape(-1, 16, 2)]
    simulate(dut, sender(dut.add, beats, stall=stall),
             receiver(dut.add_o, taken, len(beats), stall=stall))
    words = b"".join(beat.to_bytes(64, "little") for beat in taken)
    check(pairs, np.frombuffer(words, dtype="<u4"), numpy_add(pairs))
