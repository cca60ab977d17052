"""Progress of training: loss, accuracy and area under the ROC curve of each interval."""

import math
from typing import NamedTuple

import numpy as np

from host.dlrm.dense_trainer import DenseStep
from host.dlrm.metrics import by_interval
from host.samples import Samples

__all__ = ["Intervals", "finite"]


def finite(value: float | None) -> float | None:
    """Return ``value`` for JSON: None if it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


class _Step(NamedTuple):
    """Data of a step in an interval, without its samples and gradients, which are large."""

    epoch: int
    number: int
    loss: float
    predictions: np.ndarray
    labels: np.ndarray


class Intervals:
    """Quality of predictions; each prediction precedes the training on its sample.

    size: mini-batches per interval. The last interval of an epoch may be shorter.
    rows: member; finished intervals of the report: ``epoch``, ``first_step``, ``steps``,
        ``samples``, ``loss`` (mean over samples), ``accuracy`` and ``auc``. Values that are not
        finite are None, and so is the AUC if all samples have the same label.
    """

    def __init__(self, size: int):
        self._size = size
        self.rows: list[dict] = []
        self._steps: list[_Step] = []

    def add(self, epoch: int, step: int, samples: Samples, done: DenseStep) -> dict | None:
        """Add a mini-batch; return the interval that it completes, or None."""
        ended = self.close() if self._steps and self._steps[0].epoch != epoch else None
        self._steps.append(_Step(epoch, step, done.loss, done.predictions, samples.labels))
        return self.close() if len(self._steps) == self._size else ended

    def close(self) -> dict | None:
        """End the open interval and return it; None if it is empty."""
        if not self._steps:
            return None
        steps, self._steps = self._steps, []
        predictions = np.concatenate([step.predictions for step in steps])
        labels = np.concatenate([step.labels for step in steps])
        quality, = by_interval(predictions, labels, len(labels))
        loss = math.fsum(step.loss * len(step.labels) for step in steps) / len(labels)
        self.rows.append({"epoch": steps[0].epoch, "first_step": steps[0].number,
                          "steps": len(steps), "samples": len(labels), "loss": finite(loss),
                          "accuracy": quality.accuracy, "auc": quality.auc})
        return self.rows[-1]
