import math

import numpy as np
import pytest

from host.dlrm.loss import binary_cross_entropy


def test_losses_predictions_and_gradients_one_by_one():
    logits = np.random.default_rng(0).normal(0, 4, 50).astype(np.float32)
    labels = (np.arange(50) % 3 == 0).astype(np.float32)
    loss = binary_cross_entropy(logits, labels)
    each = []
    for n, (z, y) in enumerate(zip(logits.tolist(), labels.tolist())):
        p = 1 / (1 + math.exp(-z))
        each.append(np.float32(-math.log(p if y else 1 - p)))
        alone = binary_cross_entropy(logits[n:n + 1], labels[n:n + 1])
        assert alone.mean == pytest.approx(float(each[n]), rel=2e-7)
        assert loss.predictions[n] == np.float32(p)
        assert loss.gradient[n] == (np.float32(p) - np.float32(y)) / np.float32(50)
    assert loss.mean == pytest.approx(math.fsum(map(float, each)) / 50, rel=2e-7)
    assert loss.predictions.dtype == loss.gradient.dtype == np.float32


def test_the_mean_is_that_of_the_exact_sum_in_any_order():
    rng = np.random.default_rng(1)
    logits = (rng.normal(0, 1, 1000) * 10.0 ** rng.integers(-3, 2, 1000)).astype(np.float32)
    labels = rng.integers(0, 2, 1000).astype(np.float32)
    loss = binary_cross_entropy(logits, labels)
    each = [binary_cross_entropy(logits[n:n + 1], labels[n:n + 1]).mean for n in range(1000)]
    assert loss.mean == np.float32(math.fsum(each)) / np.float32(1000)
    order = rng.permutation(1000)
    assert binary_cross_entropy(logits[order], labels[order]).mean == loss.mean


def test_sure_predictions():
    logits = np.array([200, -200, 200, -200], np.float32)
    loss = binary_cross_entropy(logits, np.array([1, 0, 0, 1], np.float32))
    assert loss.mean == 100
    assert loss.gradient.tolist() == [0, np.float32(math.exp(-200)), 0.25, -0.25]


def test_bad_input():
    with pytest.raises(ValueError, match=r"at least one sample, not shape \(0,\)"):
        binary_cross_entropy(np.zeros(0, np.float32), np.zeros(0, np.float32))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\), not \(2, 1\)"):
        binary_cross_entropy(np.zeros(2, np.float32), np.zeros((2, 1), np.float32))
