"""FloatAdder by the hundred thousand, on the compiled engine, 16 lanes a beat."""

import numpy as np
import pytest

from sim.engines import load
from tests.rtl.float.cases import directed_pairs, numpy_add, random_pairs
from tests.rtl.float.vector_top import AdderTop


@pytest.fixture(scope="module")
def adder():
    return load(AdderTop(), "adder_top")


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_random_operands(adder, stall):
    directed = directed_pairs()
    pairs = np.concatenate([directed[:len(directed) // 16 * 16], random_pairs(160_000, 11)])
    beats = np.zeros((len(pairs) // 16, 33), dtype=np.uint32)
    beats[:, :16] = pairs[:, 0].reshape(-1, 16)
    beats[:, 16:32] = pairs[:, 1].reshape(-1, 16)
    engine = adder.instance()
    if stall:
        engine.set_stall("i", 1, stall)
        engine.set_stall("o", 2, stall)
    engine.push("i", beats)
    engine.run(3 * len(beats))
    sums, cycles = engine.pop("o")
    expected = numpy_add(pairs)
    assert len(sums) == len(beats)
    wrong = np.flatnonzero(sums.ravel() != expected)
    assert not len(wrong), [f"{a:08x} + {b:08x}" for a, b in pairs[wrong[:5]]]
    if not stall:
        assert cycles[-1] - cycles[0] == len(beats) - 1, "one beat a cycle"
