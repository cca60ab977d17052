import math

import numpy as np
import pytest

from host.dlrm.metrics import Quality, accuracy, auc, by_interval


def counted(predictions, labels):
    """Return the fraction of pairs in order, counted one by one."""
    clicks = [p for p, y in zip(predictions, labels) if y]
    others = [p for p, y in zip(predictions, labels) if not y]
    return sum((a > b) + (a == b) / 2 for a in clicks for b in others) / (len(clicks) * len(others))


@pytest.mark.parametrize("n, values", [(2, 1000), (9, 3), (200, 7), (300, 10 ** 6)])
def test_auc_counts_pairs(n, values):
    rng = np.random.default_rng(n)
    predictions = (rng.integers(0, values, n) / values).astype(np.float32)
    labels = rng.integers(0, 2, n).astype(np.float32)
    labels[:2] = 0, 1
    assert auc(predictions, labels) == pytest.approx(counted(predictions.tolist(), labels.tolist()),
                                                     abs=1e-12)


def test_auc_of_ends():
    predictions = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    assert auc(predictions, np.array([0, 0, 1, 1])) == 1
    assert auc(predictions, np.array([1, 1, 0, 0])) == 0
    assert auc(np.full(4, 0.5, np.float32), np.array([1, 0, 0, 0])) == 0.5
    assert auc(predictions, np.zeros(4)) is auc(predictions, np.ones(4)) is None
    assert auc(np.array([math.nan, 1], np.float32), np.array([0, 1])) is None


def test_accuracy():
    predictions = np.array([0.5, 0.49, 0.9, 0.1], np.float32)
    assert accuracy(predictions, np.array([1, 0, 0, 0])) == 0.75
    with pytest.raises(ValueError, match="labels must not be empty"):
        accuracy(predictions[:0], predictions[:0])


def test_intervals():
    predictions = np.array([0.1, 0.9, 0.8, 0.2, 0.7], np.float32)
    labels = np.array([0, 1, 0, 1, 0], np.float32)
    assert by_interval(predictions, labels, 2) == [Quality(2, 1, 1), Quality(2, 0, 0),
                                                   Quality(1, None, 0)]
    assert by_interval(predictions, labels, 9) == [Quality(5, counted(predictions, labels), 0.4)]
    assert by_interval(predictions[:0], labels[:0], 2) == []
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        by_interval(predictions, labels, 0)
