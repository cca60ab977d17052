import math

import numpy as np
import pytest

from host.dlrm.optimizer import Optimizer
from tests.host.dlrm.test_interaction import plain_dot

F = np.float32


@pytest.mark.parametrize("dimension", [4, 16, 40])
def test_sgd_rounds_product_and_difference(dimension):
    rng = np.random.default_rng(0)
    vectors, gradients = rng.standard_normal((2, 30, dimension)).astype(F)
    states = rng.random(30).astype(F)
    got, kept = Optimizer("sgd", 0.3).apply(vectors, states, gradients)
    assert got.dtype == F and np.array_equal(kept, states)
    for row, w, g in zip(got, vectors, gradients):
        assert row.tolist() == [a - F(F(0.3) * b) for a, b in zip(w, g)]


@pytest.mark.parametrize("dimension", [4, 16, 40])
def test_rowwise_adagrad_operation_by_operation(dimension):
    rng = np.random.default_rng(1)
    vectors, gradients = rng.standard_normal((2, 30, dimension)).astype(F)
    states = np.where(rng.random(30) < 0.3, 0, rng.random(30)).astype(F)
    got, after = Optimizer("rowwise-adagrad", 0.3, 0.001).apply(vectors, states, gradients)
    assert got.dtype == after.dtype == F
    for n, (w, g) in enumerate(zip(vectors, gradients)):
        m = states[n] + np.divide(plain_dot(g, g), F(dimension))
        step = F(0.3) / (np.sqrt(m) + F(0.001))
        assert after[n] == m
        assert got[n].tolist() == [a - step * b for a, b in zip(w, g)]


def test_no_gradient_changes_nothing():
    vectors = np.array([[1, -0.0, 3, 4]], F)
    for name in ("sgd", "rowwise-adagrad"):
        got, states = Optimizer(name).apply(vectors, np.zeros(1, F), np.zeros((1, 4), F))
        assert got.tobytes() == vectors.tobytes() and states.tolist() == [0]


def test_what_is_not_finite():
    vectors = np.ones((1, 4), F)
    gradients = np.array([[math.inf, -math.inf, 2, -math.nan]], F)
    got, _ = Optimizer("sgd").apply(vectors, np.zeros(1, F), gradients)
    assert got.view(np.uint32).tolist() == [[0xFF800000, 0x7F800000, F(0.8).view(np.uint32),
                                             0x7FC00000]]
    got, states = Optimizer("rowwise-adagrad").apply(vectors, np.zeros(1, F), gradients)
    assert (got.view(np.uint32) == 0x7FC00000).all() and states.view(np.uint32) == 0x7FC00000
    # An infinite state makes the step 0, and 0 times infinity is not a number.
    got, states = Optimizer("rowwise-adagrad").apply(vectors, np.zeros(1, F),
                                                     np.array([[3e38, 0, 1, math.inf]], F))
    assert states.tolist() == [math.inf]
    assert got[0, :3].tolist() == [1, 1, 1] and got[0, 3].view(np.uint32) == 0x7FC00000


@pytest.mark.parametrize("arguments, message", [
    ({"name": "adam"}, "optimizer must be sgd or rowwise-adagrad, not 'adam'"),
    ({"learning_rate": 0}, "learning_rate must be finite and above 0 as a float32, not 0"),
    ({"learning_rate": 1e-50}, "learning_rate must be finite and above 0"),
    ({"learning_rate": math.nan}, "learning_rate must be finite and above 0"),
    ({"epsilon": 1e39}, "epsilon must be finite and above 0 as a float32, not 1e\\+39"),
])
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(**arguments)
