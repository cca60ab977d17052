import math
from dataclasses import replace

import numpy as np
import pytest

from host.dlrm.dlrm import Dlrm, pool, pooled_reference, sigmoid
from host.dlrm.float32 import fused, means
from host.dlrm.rows import row_values
from host.model import Model
from host.samples import concatenate
from tests.host.test_samples import random_samples
from tests.optional import absent

SMALL = Model((100, 100, 100, 100), 32, 3, (20, 32), (9, 1), "small")


def plain_pool(vectors, lengths):
    sums, at = [], 0
    for length in lengths:
        total = np.zeros(vectors.shape[1], np.float32)
        for i in range(length):
            total = vectors[at + i] if i == 0 else total + vectors[at + i]
        at += length
        sums.append(total)
    return np.array(sums)


@pytest.mark.parametrize("longest", [0, 1, 3, 40])
def test_pool_adds_in_slot_order(longest):
    rng = np.random.default_rng(longest)
    lengths = rng.integers(0, longest + 1, 200)
    vectors = (rng.standard_normal((lengths.sum(), 16))
               * 10.0 ** rng.integers(-6, 6, (lengths.sum(), 1))).astype(np.float32)
    assert pool(vectors, lengths).tobytes() == plain_pool(vectors, lengths).tobytes()


def test_pool_keeps_a_lone_negative_zero_and_gives_positive_zero_for_nothing():
    got = pool(np.full((1, 16), -0.0, np.float32), np.array([0, 1, 0]))
    assert np.signbit(got).tolist() == [[False] * 16, [True] * 16, [False] * 16]


def test_a_mean_is_the_sum_divided_once():
    rng = np.random.default_rng(3)
    lengths = np.array([0, 1, 3, 100, 7])
    vectors = rng.standard_normal((lengths.sum(), 16)).astype(np.float32)
    sums = plain_pool(vectors, lengths)
    # One rounding: the float64 quotient is exact enough to round correctly.
    expected = (sums.astype(np.float64) / np.maximum(lengths, 1)[:, None]).astype(np.float32)
    assert pool(vectors, lengths, "mean").tobytes() == expected.tobytes()
    samples = random_samples(20, 4, seed=5)
    mean = pooled_reference(samples, replace(SMALL, pooling="mean"), 3)
    rows = row_values(SMALL, 3, samples.tables, samples.rows)
    lengths = samples.bag_lengths.reshape(-1)
    assert mean.tobytes() == pool(rows, lengths, "mean").tobytes()
    assert not np.array_equal(mean, pooled_reference(samples, SMALL, 3))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_weighted_bags_add_unrounded_products_in_slot_order(pooling):
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 5, 60)
    weighted = rng.random(60) < 0.5
    vectors = rng.standard_normal((lengths.sum(), 16)).astype(np.float32)
    weights = rng.standard_normal(len(vectors)).astype(np.float32)
    weights[3], vectors[4, 0] = 0, -0.0
    expected, at, rounded = plain_pool(vectors, lengths), 0, 0
    for bag, length in enumerate(lengths):
        for place in range(at, at + length) if weighted[bag] else ():
            total = expected[bag] if place > at else np.zeros(16, np.float32)
            expected[bag] = fused(vectors[place], weights[place], total)
            rounded += (expected[bag] != total + vectors[place] * weights[place]).sum()
        at += length
    if pooling == "mean":
        expected = means(expected, lengths)
    assert rounded > 100
    assert pool(vectors, lengths, pooling, weights, weighted).tobytes() == expected.tobytes()
    assert pool(vectors, lengths, pooling, weights).tobytes() == pool(
        vectors, lengths, pooling, weights, np.ones(60, bool)).tobytes()
    # A weight of 1 changes only the sign of a zero, and a NaN.
    assert np.array_equal(pool(vectors, lengths, pooling, np.ones_like(weights)),
                          pool(vectors, lengths, pooling))


def test_pooled_reference_weights_some_tables():
    samples = random_samples(50, 4, seed=5, weighted=(1, 3))
    vectors = row_values(SMALL, 3, samples.tables, samples.rows)
    lengths = samples.bag_lengths.reshape(-1)
    expected = pool(vectors, lengths, "sum", samples.weights, np.tile([False, True] * 2, 50))
    got = pooled_reference(samples, replace(SMALL, weighted_tables=(1, 3)), 3)
    assert got.tobytes() == expected.tobytes()


def test_pooled_reference_takes_rows_of_the_right_tables():
    samples = random_samples(50, 4, seed=5)
    vectors = row_values(SMALL, 3, samples.tables, samples.rows)
    expected = plain_pool(vectors, samples.bag_lengths.reshape(-1)).reshape(50, 4, 32)
    assert np.array_equal(pooled_reference(samples, SMALL, 3), expected)


def test_pooled_reference_splits_long_streams_between_samples(monkeypatch):
    samples = random_samples(50, 4, seed=5)
    whole = pooled_reference(samples, SMALL, 3)
    for keys in (1, 13, 64):
        monkeypatch.setattr("host.dlrm.dlrm._BLOCK_KEYS", keys)
        assert np.array_equal(pooled_reference(samples, SMALL, 3), whole)


def test_sigmoid_is_rounded_once_and_saturates():
    values = np.array([-200, -80, -1.5, -0.0, 0, 1e-8, 3, 80, 200], np.float32)
    expected = [np.float32(math.exp(x) / (1 + math.exp(x)) if x < 0 else 1 / (1 + math.exp(-x)))
                for x in values.tolist()]
    assert sigmoid(values).tolist() == expected


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_predictions_do_not_depend_on_batches(batch):
    samples = random_samples(150, 4, seed=6)
    model = Dlrm(SMALL, 11)
    whole = model.forward(samples)
    parts = [model.forward(samples.slice(i, min(150, i + batch))) for i in range(0, 150, batch)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert len(np.unique(whole)) > 100 and (whole > 0).all() and (whole < 1).all()
    assert not np.array_equal(Dlrm(SMALL, 12).forward(samples), whole)


def test_blas_is_near_and_bad_arguments_are_refused():
    samples = concatenate([random_samples(60, 4, seed=s) for s in (1, 2)])
    np.testing.assert_allclose(Dlrm(SMALL, 1, "blas").forward(samples),
                               Dlrm(SMALL, 1).forward(samples), rtol=1e-5)
    with pytest.raises(ValueError, match="mlp must be fixed or blas, not 'cuda'"):
        Dlrm(SMALL, 1, "cuda")
    with pytest.raises(ValueError, match="dense must have 3 features, not 2"):
        Dlrm(SMALL, 1).bottom(np.zeros((4, 2), np.float32))


def test_against_pytorch():
    torch = pytest.importorskip("torch", reason=absent("torch"))
    samples = random_samples(64, 4, seed=9)
    ours = Dlrm(SMALL, 2)
    pooled = torch.from_numpy(pooled_reference(samples, SMALL, 2).astype(np.float64))

    def run(values, layers, last_relu):
        for i, layer in enumerate(layers):
            values = torch.nn.functional.linear(
                values, torch.from_numpy(layer.weights.T.astype(np.float64)),
                torch.from_numpy(layer.biases.astype(np.float64)))
            if last_relu or i + 1 < len(layers):
                values = torch.relu(values)
        return values

    dense = run(torch.from_numpy(samples.dense.astype(np.float64)), ours.bottom_layers, True)
    z = torch.cat([dense[:, None], pooled], dim=1)
    i, j = torch.tril_indices(5, 5, offset=-1)
    mixed = torch.cat([dense, torch.bmm(z, z.transpose(1, 2))[:, i, j]], dim=1)
    expected = torch.sigmoid(run(mixed, ours.top_layers, False))[:, 0].numpy()
    np.testing.assert_allclose(ours.forward(samples), expected, rtol=2e-6)
