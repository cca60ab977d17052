"""Quality of predictions: area under the ROC curve, and accuracy."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Quality", "accuracy", "auc", "by_interval"]


@dataclass(frozen=True)
class Quality:
    """Quality of the predictions of ``samples`` consecutive samples; see `auc`."""

    samples: int
    auc: float | None
    accuracy: float


def auc(predictions: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the share of pairs of a click and a non-click in correct order; ties count half.

    Computed by the rank sum of Mann and Whitney (1947) with averaged tied ranks. None if no pair
    exists, or if a prediction is NaN.
    """
    clicked = np.asarray(labels) != 0
    clicks = int(clicked.sum())
    others = len(clicked) - clicks
    if not clicks or not others or np.isnan(predictions).any():
        return None
    _, which, counts = np.unique(predictions, return_inverse=True, return_counts=True)
    # Twice the mean rank of each value, in integers: twice the ranks below it, and count + 1.
    ranks = 2 * (np.cumsum(counts) - counts) + counts + 1
    twice = int(ranks[which][clicked].sum()) - clicks * (clicks + 1)
    return twice / (2 * clicks * others)


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of correct predictions: at least 0.5 for a click, else below."""
    if not len(labels):
        raise ValueError("labels must not be empty")
    return float(np.mean((np.asarray(predictions) >= 0.5) == (np.asarray(labels) != 0)))


def by_interval(predictions: np.ndarray, labels: np.ndarray, size: int) -> list[Quality]:
    """Return the quality of each run of ``size`` samples; the last may be shorter."""
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size!r}")
    parts = (slice(first, first + size) for first in range(0, len(labels), size))
    return [Quality(len(labels[part]), auc(predictions[part], labels[part]),
                    accuracy(predictions[part], labels[part])) for part in parts]
