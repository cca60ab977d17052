import numpy as np
import pytest

from host.data.draws import Popularity
from host.data.generator import generate
from host.data.rules import AVAZU, CRITEO, profile_for
from host.model import MODELS, Model
from host.samples import concatenate

SMALL = Model((1, 2, 7, 5000), 16, 3, (16,), (1,), "small")


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in
               ("dense", "labels", "bag_lengths", "tables", "rows"))


@pytest.mark.parametrize("model", [SMALL, MODELS["kaggle"], MODELS["avazu"], MODELS["terabyte"]],
                         ids=lambda model: model.name)
def test_samples_fit_their_model(model):
    samples = concatenate(generate(model, 3000, 5))
    assert len(samples) == 3000 and (samples.bag_lengths == 1).all()
    rows = samples.rows.reshape(3000, model.tables)
    assert (rows >= 0).all() and (rows < np.array(model.rows)).all()
    assert samples.dense.shape == (3000, model.dense)
    assert (samples.dense >= 0).all() and not np.signbit(samples.dense).any()
    assert samples.dense.max() < 21 and (samples.dense == 0).mean() > 0.1
    assert set(samples.labels.tolist()) == {0, 1}


def test_samples_depend_on_seed_and_number_only():
    whole = concatenate(generate(SMALL, 1000, 7))
    for chunk in (1, 99, 1000, 5000):
        chunks = list(generate(SMALL, 1000, 7, chunk=chunk)) if chunk > 1 else list(
            generate(SMALL, 50, 7, chunk=1))
        joined = concatenate(chunks)
        assert max(map(len, chunks)) == min(chunk, 1000)
        assert same(joined, whole.slice(0, len(joined)))
    assert same(concatenate(generate(SMALL, 300, 7)), whole.slice(0, 300))
    assert not same(concatenate(generate(SMALL, 1000, 8)), whole)


def test_popularity_is_zipf_mandelbrot():
    for exponent, shift in ((0.6, 3.0), (1.0, 5.0), (1.7, 0.5)):
        u = (np.arange(200_000) + 0.5) / 200_000
        got = np.bincount(Popularity(exponent, shift).ranks(u, 50), minlength=50) / 200_000
        edges = np.arange(51) + shift
        power = 1 - exponent
        mass = np.diff(np.log(edges) if power == 0 else edges ** power / power)
        np.testing.assert_allclose(got, mass / mass.sum(), atol=2e-5)


def test_ranks_are_scattered_over_all_rows_one_to_one():
    samples = concatenate(generate(SMALL, 20_000, 3)).rows.reshape(-1, 4)
    assert set(samples[:, 2].tolist()) == set(range(7))
    counts = np.bincount(samples[:, 3], minlength=5000)
    hottest = np.argsort(counts)[::-1][:100]
    assert 1500 < hottest.mean() < 3500 and np.ptp(hottest) > 4000


def test_labels_can_be_learned():
    """A logistic model with one weight per key beats the click rate on unseen samples."""
    model = Model((50, 300, 10), 16, 2, (16,), (1,), "small")
    samples = concatenate(generate(model, 40_000, 1))
    rows = samples.rows.reshape(-1, 3) + np.array([0, 50, 350])
    train, test = slice(0, 30_000), slice(30_000, None)
    weights, bias, scale = np.zeros(360), 0.0, np.zeros(2)

    def predict(part):
        return 1 / (1 + np.exp(-(weights[rows[part]].sum(axis=1) + bias
                                 + samples.dense[part] @ scale)))

    for _ in range(150):
        error = samples.labels[train] - predict(train)
        counts = np.bincount(rows[train].reshape(-1), minlength=360) + 100
        weights += 4 * np.bincount(rows[train].reshape(-1), np.repeat(error, 3), 360) / counts
        bias += error.mean()
        scale += 0.1 * (error[:, None] * samples.dense[train]).mean(axis=0)

    def loss(p):
        y = samples.labels[test]
        return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))

    rate = samples.labels[train].mean()
    assert 0.1 < rate < 0.5
    assert loss(predict(test)) < 0.9 * loss(np.full(10_000, rate))


def test_profiles_and_bad_arguments():
    assert profile_for(MODELS["avazu"]) is AVAZU
    assert profile_for(MODELS["kaggle"]) is profile_for(SMALL) is CRITEO
    for name, value in (("count", {"count": 0}), ("chunk", {"count": 1, "chunk": 0})):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
            next(generate(SMALL, **value))


def test_bags():
    bags = ((1, 1), (0, 3), (2, 2), (0, 0))
    model = Model((50, 5000, 7, 9), 16, 3, (16,), (1,), "bags", bags)
    samples = concatenate(generate(model, 3000, 5))
    lengths = samples.bag_lengths
    assert (lengths[:, 0] == 1).all() and (lengths[:, 2] == 2).all() and not lengths[:, 3].any()
    assert np.bincount(lengths[:, 1]) / 3000 == pytest.approx([0.25] * 4, abs=0.03)
    expected = np.repeat(np.tile(np.arange(4), 3000), lengths.reshape(-1))
    assert np.array_equal(samples.tables, expected)
    assert (samples.rows < np.array(model.rows)[samples.tables]).all()
    # The first key of every bag is the key of a model without bags.
    plain = concatenate(generate(Model(model.rows, 16, 3, (16,), (1,)), 3000, 5))
    first = samples.bag_offsets[:-1].reshape(3000, 4)
    plain_rows = plain.rows.reshape(3000, 4)
    for table in (0, 1, 2):
        there = lengths[:, table] > 0
        assert np.array_equal(samples.rows[first[there, table]], plain_rows[there, table])
    # The keys of a bag are drawn independently: in 7 rows, few pairs are equal.
    pairs = samples.rows[samples.tables == 2].reshape(3000, 2)
    assert 0.05 < (pairs[:, 0] == pairs[:, 1]).mean() < 0.4
    assert same(samples, concatenate(generate(model, 3000, 5, chunk=77)))
