"""DotInteraction of 13 units, compiled: many samples bit for bit, and the rate at model sizes."""

import numpy as np
import pytest

from host.dlrm.interaction import dot_interaction
from host.wire.layouts import pack, unpack
from rtl.config import preset
from rtl.interaction import DotInteraction, ResultBeat, VectorInBeat
from sim.bench.rates import dot_interaction_rate
from sim.engines import load
from tests.rtl.float.cases import canonical, random_vectors

pytestmark = pytest.mark.slow

TERABYTE = preset("terabyte")
SAMPLES = 200


@pytest.fixture(scope="module")
def model():
    # Loaded as in dot_interaction_rate: converted and compiled once for both.
    return load(DotInteraction(TERABYTE), "dot_interaction_terabyte",
                recipe=f"DotInteraction({TERABYTE!r})")


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("n, dimension, itself, width", [
    (27, 16, False, 367), (27, 64, False, 415), (22, 16, False, 247), (27, 64, True, 442),
    (5, 32, False, 42), (2, 48, False, 49), (1, 64, True, 65)])
def test_many_samples(model, n, dimension, itself, width, stall):
    z = random_vectors(SAMPLES * n, dimension, n)[0].reshape(SAMPLES, n, dimension)
    engine = model.instance(random_init=n)
    engine.set_signal("itself", itself)
    if stall:
        engine.set_stall("i", 3, stall)
        engine.set_stall("o", 4, stall)
    beats = dimension // 16
    place = np.arange(SAMPLES * n * beats)
    sample = place // (n * beats)
    items = pack(VectorInBeat, len(place), sample=sample, step=sample & 0xFFFF,
                 vector_last=place % beats == beats - 1,
                 sample_last=place // beats % n == n - 1)
    items[:, :16] = z.reshape(-1, 16)
    engine.push("i", items)
    engine.run(8 * len(items) + 3000)
    got, _ = engine.pop("o")
    values = z.view(np.float32)
    with np.errstate(all="ignore"):
        whole = dot_interaction(values[:, 0], values[:, 1:], itself=itself)
    assert whole.shape[1] == width
    lanes = -(-width // 16) * 16
    right = np.zeros((SAMPLES, lanes), np.uint32)
    right[:, :dimension] = z[:, 0]
    right[:, dimension:width] = canonical(np.ascontiguousarray(whole[:, dimension:]))
    np.testing.assert_array_equal(got[:, :16].reshape(SAMPLES, lanes), right)
    parts = np.arange(len(got))
    np.testing.assert_array_equal(unpack(ResultBeat, got, "sample"), parts // (lanes // 16))
    np.testing.assert_array_equal(unpack(ResultBeat, got, "last"),
                                  parts % (lanes // 16) == lanes // 16 - 1)


@pytest.mark.parametrize("n, dimension", [(27, 16), (27, 64), (26, 16), (22, 16), (22, 64)])
def test_rate(n, dimension):
    beats = dimension // 16
    most = max(n * beats, beats + -(-n * (n - 1) // 2 // 16))
    assert 1 / dot_interaction_rate(TERABYTE, n, dimension).per_cycle <= 1.1 * most
