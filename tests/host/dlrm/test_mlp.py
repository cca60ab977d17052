import math

import numpy as np
import pytest

from host.dlrm.mlp import Layer, forward, initial_layers, linear_blas, linear_fixed


def plain_linear(row, layer):
    out = []
    for j in range(layer.weights.shape[1]):
        total = None
        for k, x in enumerate(row):
            product = np.float32(x) * layer.weights[k, j]
            total = product if total is None else total + product
        out.append(total + layer.biases[j])
    return out


@pytest.mark.parametrize("inputs, outputs", [(1, 1), (13, 5), (40, 200), (3, 130)])
def test_fixed_is_the_documented_order(inputs, outputs):
    rng = np.random.default_rng(inputs)
    layer = Layer(rng.standard_normal((inputs, outputs)).astype(np.float32),
                  rng.standard_normal(outputs).astype(np.float32))
    values = rng.standard_normal((5, inputs)).astype(np.float32)
    got = linear_fixed(values, layer)
    assert got.dtype == np.float32
    for row, expected in zip(got, values):
        assert row.tolist() == plain_linear(expected, layer)


@pytest.mark.parametrize("batch", [1, 7, 256, 300])
def test_fixed_does_not_depend_on_the_batch(batch):
    rng = np.random.default_rng(3)
    layers = initial_layers(((13, 170), (170, 16)), 5)
    values = rng.standard_normal((700, 13)).astype(np.float32)
    whole = forward(values, layers)
    parts = [forward(values[i:i + batch], layers) for i in range(0, 700, batch)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_blas_agrees_within_rounding_and_relu_ends_where_asked():
    rng = np.random.default_rng(4)
    layers = initial_layers(((20, 64), (64, 8)), 5)
    values = rng.standard_normal((300, 20)).astype(np.float32)
    fixed = forward(values, layers, last_relu=False)
    np.testing.assert_allclose(forward(values, layers, linear_blas, last_relu=False), fixed,
                               rtol=1e-4, atol=1e-5)
    assert (fixed < 0).any()
    assert np.array_equal(forward(values, layers), np.maximum(fixed, 0))


def test_initial_weights_have_the_published_deviations():
    first, second = initial_layers(((300, 200), (200, 2000)), 9)
    assert first.weights.shape == (300, 200) and second.biases.shape == (2000,)
    for layer, inputs, outputs in ((first, 300, 200), (second, 200, 2000)):
        deviation = math.sqrt(2 / (inputs + outputs))
        assert abs(layer.weights.std() / deviation - 1) < 0.02
        assert abs(layer.weights.mean()) < 0.02 * deviation
        share = np.mean(np.abs(layer.weights) < deviation)
        assert abs(share - 0.6827) < 0.01
    assert abs(second.biases.std() / math.sqrt(1 / 2000) - 1) < 0.06
    again = initial_layers(((300, 200), (200, 2000)), 9)
    assert np.array_equal(again[1].weights, second.weights)
    other = initial_layers(((300, 200),), 10)[0]
    assert not np.array_equal(other.weights, first.weights)
