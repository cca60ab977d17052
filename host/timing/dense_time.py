"""Timing model of a training step's dense part on a node's GPU."""

from dataclasses import dataclass

from host.model import Model
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile

__all__ = ["DenseOperations", "DenseTime"]


def _weights(layers: tuple[tuple[int, int], ...]) -> int:
    return sum(inputs * outputs for inputs, outputs in layers)


@dataclass(frozen=True)
class DenseOperations:
    """float32 operations of a sample's dense part, without biases, ReLUs and the loss.

    A weight costs 2 operations forward, 2 for its gradient, and 2 for the gradient of its input.
    The first bottom layer omits the gradient of its input. A dot product costs 2 d forward;
    backward it costs a scaled vector for each of its two vectors.

    Members
    -------
    bottom: bottom MLP forward.
    top: from pooled vectors to bag gradients: interaction and top MLP, forward and backward.
    backward: bottom MLP backward, after which all weights have gradients.
    """

    bottom: int
    top: int
    backward: int

    @classmethod
    def of(cls, model: Model) -> "DenseOperations":
        """Return the operations of ``model``."""
        bottom, top = _weights(model.bottom_layers), _weights(model.top_layers)
        first = model.bottom_layers[0][0] * model.bottom_layers[0][1]
        pairs = model.interaction_width - model.dimension if model.interaction == "dot" else 0
        return cls(2 * bottom, 6 * top + 6 * pairs * model.dimension, 4 * bottom - 2 * first)


class DenseTime:
    """A GPU that computes the dense part of its node's share of a step, at its matrix product rate.

    Later layers are launched while the first one computes. Work that starts a step or waits for
    vectors therefore pays a single launch; see :class:`host.timing.gpu.GpuMlp`.

    Parameters: ``profile`` of the GPU, ``model``. Each method takes a time in cycles and a number
    of samples, and returns the time at which its results are in GPU memory.
    """

    def __init__(self, profile: GpuProfile, model: Model):
        self._launch = cycles_of_us(profile.launch_us)
        self._operation = cycles_of_us(1 / (profile.float32_tflops * profile.gemm_fraction * 1e6))
        self._operations = DenseOperations.of(model)
        self._weights = 2 * model.mlp_parameters

    def bottom(self, time: float, samples: int) -> float:
        """Run the bottom MLP forward, starting at ``time``."""
        return time + self._launch + samples * self._operations.bottom * self._operation

    def top(self, time: float, samples: int) -> float:
        """Compute bag gradients; dense and pooled vectors are available at ``time``."""
        return time + self._launch + samples * self._operations.top * self._operation

    def backward(self, time: float, samples: int) -> float:
        """Compute the gradients of all weights; bag gradients are available at ``time``."""
        return time + samples * self._operations.backward * self._operation

    def weights(self, time: float) -> float:
        """Update all weights; the summed gradients of all nodes are available at ``time``."""
        return time + self._launch + self._weights * self._operation
