"""Gradients of the keys of weighted bags."""

import numpy as np
import pytest

from host.dlrm.embedding import EmbeddingTables
from host.dlrm.weighted import rows_once, sent_gradients
from host.model import Model
from host.samples import Samples

F = np.float32
WEIGHTED = np.array([True, False])
MODEL = Model((9, 7), 4, 1, (4,), (1,), "small", ((0, 3), (0, 3)), weighted_tables=(0,))


def samples_of(bags, weights) -> Samples:
    """Return samples with the rows ``bags[sample][table]`` and the weights of the keys."""
    lengths = np.array([[len(bag) for bag in sample] for sample in bags], np.int32)
    rows = [row for sample in bags for bag in sample for row in bag]
    tables = np.repeat(np.tile(np.arange(2, dtype=np.int32), len(bags)), lengths.reshape(-1))
    return Samples(np.zeros((len(bags), 1), F), np.zeros(len(bags), F), lengths, tables,
                   np.array(rows, np.int64), np.array(weights, F))


SAMPLES = samples_of([[[3, 5, 3], [1, 1]], [[], [2]], [[5, 3], []]],
                     [0.5, 2, 0.25, 1, 1, 1, 3, np.nan])
GRADIENTS = np.arange(24, dtype=F).reshape(3, 2, 4)


def test_a_row_is_once_in_a_weighted_bag_at_its_first_slot():
    found = rows_once(SAMPLES, WEIGHTED)
    assert found.bag_lengths.tolist() == [[2, 2], [0, 1], [2, 0]]
    assert found.rows.tolist() == [3, 5, 1, 1, 2, 5, 3]
    assert found.weights is not None
    assert found.weights[:-1].tolist() == [0.75, 2, 1, 1, 1, 3] and np.isnan(found.weights[-1])
    assert np.array_equal(rows_once(found, WEIGHTED).rows, found.rows)
    assert np.array_equal(rows_once(SAMPLES, np.zeros(2, bool)).rows, SAMPLES.rows)


def test_weights_of_a_row_are_added_in_slot_order():
    weights = [F(1e8), F(3.25), F(-1e8)]
    (sum_,) = rows_once(samples_of([[[4, 4, 4], []]], weights), WEIGHTED).weights
    assert sum_ == (weights[0] + weights[1]) + weights[2] != weights[1]


def test_keys_of_a_weighted_bag_are_sent_one_by_one():
    numbers, lengths, vectors = sent_gradients(rows_once(SAMPLES, WEIGHTED), GRADIENTS, WEIGHTED)
    assert numbers.tolist() == [0, 0, 1, 3, 4, 4, 5]
    assert lengths.tolist() == [1, 1, 2, 1, 1, 1, 0]
    assert np.array_equal(vectors[:6], [
        F(0.75) * GRADIENTS[0, 0], F(2) * GRADIENTS[0, 0], GRADIENTS[0, 1], GRADIENTS[1, 1],
        F(3) * GRADIENTS[2, 0], [np.nan] * 4], equal_nan=True)
    assert (vectors[5].view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize("in_order", [(), (0, 1)])
def test_rows_are_updated_by_the_products(in_order):
    samples = samples_of([[[3, 5, 3], [1, 1]], [[3], [2]]], [0.5, 2, 0.25, 1, 1, 4, 1])
    gradients = GRADIENTS[:2]
    tables = EmbeddingTables(MODEL, 1, in_order=in_order)
    before, _ = tables.rows.read(np.array([3, 5]))
    assert np.array_equal(tables.pooled(samples)[1, 0], F(4) * before[0])
    tables.update(samples, gradients)
    after, _ = tables.rows.read(np.array([3, 5]))
    rate = F(tables.optimizer.learning_rate)
    assert np.allclose(after, before - rate * np.array([
        0.75 * gradients[0, 0] + 4 * gradients[1, 0], 2 * gradients[0, 0]]), rtol=1e-6)


def test_means_are_left_to_the_host():
    mean = Model((9, 7), 4, 1, (4,), (1,), "small", ((0, 3), (0, 3)), pooling="mean",
                 weighted_tables=(0,))
    with pytest.raises(ValueError, match="with_host_means"):
        EmbeddingTables(mean, 1)
    EmbeddingTables(mean.with_host_means(), 1)
