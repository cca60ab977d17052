"""The compiled linear layers against numpy's, bit for bit."""

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.dlrm.mlp import Layer, linear_fixed
from host.model import MODELS
from sim.host_cpp.check import linear_compiled


def _layer(rng, depth: int, width: int) -> Layer:
    return Layer(rng.standard_normal((depth, width), np.float32),
                 rng.standard_normal(width, np.float32))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 130])
@pytest.mark.parametrize(("depth", "width"), [(1, 1), (13, 512), (33, 31), (64, 33), (367, 97)])
def test_bits_equal_those_of_numpy(count, depth, width):
    rng = np.random.default_rng(count + depth)
    layer, inputs = _layer(rng, depth, width), rng.standard_normal((count, depth), np.float32)
    got, expected = linear_compiled(inputs, layer), linear_fixed(inputs, layer)
    assert got.dtype == np.float32 and got.shape == expected.shape
    assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))


def test_subnormals_zeros_and_infinities():
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 3e38, -3e38, np.inf, 1.0], np.float32)
    layer = Layer(rng.choice(special, (5, 40)), rng.choice(special, 40))
    inputs = rng.choice(special, (300, 5))
    expected, got = linear_fixed(inputs, layer), linear_compiled(inputs, layer)
    number = ~np.isnan(expected)
    assert number.sum() > 1000 and (expected[number] == 0).any()
    assert (expected.view(np.uint32)[~number] == 0x7FC00000).all()
    assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))


def test_views_and_wrong_shapes():
    rng = np.random.default_rng(4)
    layer, inputs = _layer(rng, 20, 8), rng.standard_normal((60, 7), np.float32)
    across = inputs.reshape(20, 21).T
    assert np.array_equal(linear_compiled(across, layer), linear_fixed(across, layer))
    with pytest.raises(ValueError, match=r"weights must be \[7, outputs\] with as many biases"):
        linear_compiled(inputs, layer)


def test_predictions_of_a_model_are_the_same():
    model = MODELS["kaggle"]
    samples = next(iter(generate(model, 40, 2)))
    plain = Dlrm(model, 5).forward(samples)
    compiled = Dlrm(model, 5, linear=linear_compiled).forward(samples)
    assert np.array_equal(plain.view(np.uint32), compiled.view(np.uint32))
