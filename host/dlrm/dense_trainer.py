"""The dense part of training: MLPs, interaction, loss, and their backward pass."""

import hashlib
from dataclasses import dataclass

import numpy as np

from host.dlrm.backward import Linear, activations, interaction_backward, mlp_backward
from host.dlrm.dlrm import Dlrm, divided
from host.dlrm.float32 import canonical
from host.dlrm.interaction import interaction
from host.dlrm.loss import binary_cross_entropy
from host.dlrm.mlp import Layer, linear_blas, linear_fixed
from host.dlrm.optimizer import Optimizer
from host.model import Model
from host.samples import Samples

__all__ = ["DenseStep", "DenseTrainer"]


@dataclass(frozen=True)
class DenseStep:
    """Results of a training step's dense part.

    Members
    -------
    loss: mean over the mini-batch before the update.
    predictions: float32 ``[n]``, before the update.
    gradients: gradient of the loss by each vector that the NICs pool, float32 ``[n, tables, d]``.
    """

    loss: float
    predictions: np.ndarray
    gradients: np.ndarray


class DenseTrainer:
    """Trains the MLPs by SGD. A step is `begin`, then `finish` with the pooled vectors.

    Parameters
    ----------
    model, seed: shape and initial weights.
    learning_rate: rate of both MLPs, rounded to float32.
    mlp: ``fixed``: bit-identical on every machine; ``blas``: faster, but specific to a machine.
    linear: a bit-identical replacement of :func:`host.dlrm.mlp.linear_fixed` for ``fixed``.

    The mini-batch is always the global mini-batch: gradients of weights are sums over it in sample
    order, which models the nodes' all-reduce. ``dlrm`` holds the current weights.
    """

    def __init__(self, model: Model, seed: int, learning_rate: float = 0.1, mlp: str = "fixed",
                 linear: Linear = linear_fixed) -> None:
        self.dlrm = Dlrm(model, seed, mlp, linear)
        self._linear = linear if mlp == "fixed" else linear_blas
        self._sgd = Optimizer("sgd", learning_rate)
        self._begun: tuple[Samples, list[np.ndarray]] | None = None

    def begin(self, samples: Samples) -> np.ndarray:
        """Begin a step; return the dense vectors of ``samples``: float32 ``[n, d]``."""
        features = self.dlrm.model.dense
        if samples.dense.shape[1] != features:
            raise ValueError(f"dense must have {features} features, "
                             f"not {samples.dense.shape[1]!r}")
        bottom = activations(samples.dense, self.dlrm.bottom_layers, self._linear)
        self._begun = samples, bottom
        return bottom[-1]

    def finish(self, pooled: np.ndarray) -> DenseStep:
        """Finish the step with its ``pooled [n, tables, d]`` and update the MLPs.

        Raises ``RuntimeError`` if no step was started.
        """
        if self._begun is None:
            raise RuntimeError("begin must be called before finish")
        (samples, bottom), self._begun = self._begun, None
        dlrm, linear = self.dlrm, self._linear
        pooled = divided(dlrm.model, pooled, samples.bag_lengths)
        top = activations(interaction(dlrm.model, bottom[-1], pooled), dlrm.top_layers,
                          linear, last_relu=False)
        loss = binary_cross_entropy(top[-1][:, 0], samples.labels)
        top_gradients, mixed = mlp_backward(top, dlrm.top_layers, loss.gradient[:, None],
                                            linear, last_relu=False)
        dense, bags = interaction_backward(dlrm.model, bottom[-1], pooled, mixed)
        bottom_gradients, _ = mlp_backward(bottom, dlrm.bottom_layers, dense, linear,
                                           inputs=False)
        self._update(dlrm.bottom_layers, bottom_gradients)
        self._update(dlrm.top_layers, top_gradients)
        return DenseStep(loss.mean, loss.predictions,
                         divided(dlrm.model, bags, samples.bag_lengths))

    def _update(self, layers: list[Layer], gradients: list[Layer]) -> None:
        layers[:] = [Layer(self._follow(layer.weights, gradient.weights),
                           self._follow(layer.biases, gradient.biases))
                     for layer, gradient in zip(layers, gradients)]

    def _follow(self, weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return self._sgd.apply(weights, np.empty(0, np.float32), gradient)[0]

    def digest(self) -> bytes:
        """Return the SHA-256 of the bits of all weights.

        Bottom MLP, then top; each layer's weights ``[inputs, outputs]``, then its biases;
        little-endian.
        """
        hashed = hashlib.sha256()
        for layer in (*self.dlrm.bottom_layers, *self.dlrm.top_layers):
            for values in (layer.weights, layer.biases):
                hashed.update(canonical(values).astype("<f4").tobytes())
        return hashed.digest()
