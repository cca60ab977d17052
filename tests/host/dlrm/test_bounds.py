"""Bounds of rows: any order of float32 additions is within them, and they are narrow."""

import numpy as np
import pytest

from host.dlrm.bounds import row_bounds, sum_bounds
from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from tests.rtl.float.exact_cases import KINDS, terms_of_kind


def added(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a sum of ``values [n, d]``, adding any two values at a time."""
    left = list(values)
    with np.errstate(all="ignore"):
        while len(left) > 1:
            one, other = (left.pop(rng.integers(len(left))) for _ in range(2))
            left.append(one + other)
    return left[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("any", "infinite")])
def test_any_order_is_within_the_bounds(kind):
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 12, 300)
    values = terms_of_kind(kind, 300, 2, 7).view(np.float32)
    distinct, (low, high) = sum_bounds(keys, values)
    assert distinct.tolist() == np.unique(keys).tolist()
    for row, key in enumerate(distinct):
        for _ in range(5):
            total = added(values[keys == key], rng)
            open_ = np.isinf(low[row]) & np.isinf(high[row])
            assert (open_ | ((low[row] <= total) & (total <= high[row]))).all()


def test_bounds_are_narrow():
    """100 terms of one magnitude: 100 units of the sum of magnitudes on each side."""
    values = np.random.default_rng(2).uniform(1, 2, (100, 1)).astype(np.float32)
    _, (low, high) = sum_bounds(np.zeros(100, int), values)
    width, total = float(high[0, 0]) - float(low[0, 0]), float(values.sum(dtype=np.float64))
    assert 0 < width <= 2.1 * 101 * 2.0 ** -24 * total


def test_sums_of_two_terms_are_exact():
    keys = np.array([1, 1, 2, 3, 3, 3])
    values = terms_of_kind("gaussian", 6, 2, 3).view(np.float32)
    _, (low, high) = sum_bounds(keys, values)
    _, sums = sums_by_key(keys, values)
    assert (low[:2] == sums[:2]).all() and (high[:2] == sums[:2]).all()
    assert (low[2] < sums[2]).all() and (sums[2] < high[2]).all()


def test_a_partial_sum_may_overflow():
    most = np.finfo(np.float32).max
    values = np.array([[most], [most], [-most], [1.0]], np.float32)
    _, (low, high) = sum_bounds(np.zeros(4, int), values)
    assert low[0, 0] == -np.inf and high[0, 0] == np.inf


@pytest.mark.parametrize("name", ["sgd", "rowwise-adagrad"])
def test_rows_follow_their_gradients(name):
    """Any gradients within bounds, also of both signs, lead to rows within bounds."""
    rng = np.random.default_rng(3)
    optimizer = Optimizer(name)
    vectors = rng.standard_normal((50, 16)).astype(np.float32)
    states = rng.random(50).astype(np.float32) * (name != "sgd")
    middle = rng.standard_normal((50, 16)).astype(np.float32) * np.float32(1e-3)
    spread = np.abs(middle) * rng.choice([0, 1e-6, 0.1, 3], middle.shape).astype(np.float32)
    low, high = middle - spread, middle + spread
    (least, most), (bottom, top) = row_bounds(optimizer, vectors, states, (low, high))
    for _ in range(20):
        share = rng.choice([0.0, 0.5, 1.0], low.shape).astype(np.float32)
        gradients = np.clip(low + share * (high - low), low, high)
        new, state = optimizer.apply(vectors, states, gradients)
        assert ((least <= new) & (new <= most)).all()
        assert ((bottom <= state) & (state <= top)).all()
    still = spread == 0
    assert (least[still.all(axis=1)] == most[still.all(axis=1)]).all()
