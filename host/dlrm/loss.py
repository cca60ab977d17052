"""Binary cross entropy of a mini-batch, and its gradient."""

from dataclasses import dataclass

import numpy as np

from host.dlrm.dlrm import sigmoid
from host.dlrm.exact import exact_sums, nearest
from host.dlrm.float32 import canonical, quiet

__all__ = ["Loss", "binary_cross_entropy"]


@dataclass(frozen=True)
class Loss:
    """Loss, predictions and gradients of a mini-batch's logits.

    Members
    -------
    mean: the loss, a float32.
    predictions: float32 ``[n]``, the sigmoid of each logit.
    gradient: float32 ``[n]``, of the mean by each logit.
    """

    mean: float
    predictions: np.ndarray
    gradient: np.ndarray


@quiet()
def binary_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> Loss:
    """Return the mean loss of float32 ``logits [n]`` for ``labels [n]``, 0 or 1.

    A sample's loss, ``max(z, 0) - z · y + log(1 + exp(-|z|))``, is computed in float64 and rounded
    once to float32. The exact sum of all losses is rounded once and divided by float32 of n. The
    gradient is ``(p - y) / n`` for prediction p, both operations rounded to float32.

    Raises ``ValueError`` for an empty mini-batch, or labels of another shape.
    """
    if logits.ndim != 1 or not len(logits):
        raise ValueError(f"logits must have at least one sample, not shape "
                         f"{logits.shape!r}")
    if labels.shape != logits.shape:
        raise ValueError(f"labels must have shape {logits.shape!r}, not {labels.shape!r}")
    wide = logits.astype(np.float64)
    losses = np.maximum(wide, 0) - wide * labels + np.log1p(np.exp(-np.abs(wide)))
    count = np.float32(len(logits))
    total = np.uint32(nearest(exact_sums(losses.astype(np.float32)[:, None])[0]))
    predictions = sigmoid(logits)
    return Loss(float(total.view(np.float32) / count), predictions,
                canonical((predictions - labels.astype(np.float32)) / count))
