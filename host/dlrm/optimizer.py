"""Optimizers of embedding rows; every operation is rounded to float32 as in the NIC."""

import math
from dataclasses import dataclass

import numpy as np

from host.dlrm.float32 import canonical, quiet
from host.dlrm.interaction import dot_interaction

__all__ = ["OPTIMIZERS", "Optimizer", "follow"]

OPTIMIZERS = ("sgd", "rowwise-adagrad")


@dataclass(frozen=True)
class Optimizer:
    """Update rule of a row, given the sum of its gradients.

    Parameters
    ----------
    name: ``sgd``, or ``rowwise-adagrad`` (exact: duplicates are summed first), which keeps a
        float32 state per row, initially +0.
    learning_rate, epsilon: rounded to float32; only Adagrad uses ``epsilon``.

    Raises
    ------
    ValueError
        The optimizer is unknown, or a number is not finite and positive as a float32.
    """

    name: str = "sgd"
    learning_rate: float = 0.1
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ValueError(f"optimizer must be {' or '.join(OPTIMIZERS)}, not {self.name!r}")
        for field in ("learning_rate", "epsilon"):
            value = getattr(self, field)
            with np.errstate(over="ignore"):
                rounded = float(np.float32(value))
            if not (math.isfinite(rounded) and rounded > 0):
                raise ValueError(f"{field} must be finite and above 0 as a float32, not {value!r}")

    def apply(self, vectors: np.ndarray, states: np.ndarray,
              gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the new ``vectors [n, d]`` and ``states [n]`` of rows, see `follow`."""
        return follow(self.name, self.learning_rate, self.epsilon, vectors, states, gradients)

    @quiet()
    def moved(self, vectors: np.ndarray, states: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Return the new ``vectors [n, d]`` of rows whose new ``states [n]`` are given."""
        return _moved(self.name, np.float32(self.learning_rate), np.float32(self.epsilon), vectors,
                      states, gradients)


@quiet()
def follow(name: str, learning_rate: float, epsilon: float, vectors: np.ndarray,
           states: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the new ``vectors [n, d]`` and ``states [n]`` of rows with ``gradients [n, d]``.

    SGD: ``w - lr · g``. Row-wise Adagrad: the new state m is ``m + dot(g, g) / d``, with the dot
    product summed like the interaction's; the new vector is ``w - (lr / (√m + epsilon)) · g``.
    Every operation is rounded to float32, a NaN is 0x7FC00000. The rate may be 0.
    """
    if name != "sgd":
        states = canonical(states + _squares(gradients) / np.float32(gradients.shape[1]))
    return _moved(name, np.float32(learning_rate), np.float32(epsilon), vectors, states,
                  gradients), states


def _moved(name: str, rate: np.float32, epsilon: np.float32, vectors: np.ndarray,
           states: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return the new vectors of rows with new ``states`` and ``gradients``."""
    if name == "sgd":
        return canonical(vectors - rate * gradients)
    steps = rate / (np.sqrt(states) + epsilon)
    return canonical(vectors - steps[:, None] * gradients)


def _squares(vectors: np.ndarray) -> np.ndarray:
    """Return the dot product of each of ``vectors [n, d]`` with itself."""
    # Without pooled vectors, the interaction's last value is the vector's dot with itself.
    return dot_interaction(vectors, np.empty((len(vectors), 0, vectors.shape[1]), np.float32),
                           itself=True)[:, -1]
