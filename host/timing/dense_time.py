"""Time of the dense part of a step of training on the GPU beside each NIC."""

from dataclasses import dataclass

from host.model import Model
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile

__all__ = ["DenseOperations", "DenseTime"]


def _weights(layers: tuple[tuple[int, int], ...]) -> int:
    return sum(inputs * outputs for inputs, outputs in layers)


@dataclass(frozen=True)
class DenseOperations:
    """float32 operations of a sample's dense part; biases, ReLUs and the loss are left out.

    A weight costs two forward, two for its own gradient and two for that of its input, which
    nothing needs of the first bottom layer. A dot product costs 2 d forward, and a vector times a
    number for each of its two vectors backward.

    Members
    -------
    bottom: the bottom MLP forward.
    top: from pooled vectors to the gradients of bags: interaction and top MLP, forward and
        backward.
    backward: the bottom MLP backward, after which every gradient of a weight is there.
    """

    bottom: int
    top: int
    backward: int

    @classmethod
    def of(cls, model: Model) -> "DenseOperations":
        """Return those of ``model``."""
        bottom, top = _weights(model.bottom_layers), _weights(model.top_layers)
        first = model.bottom_layers[0][0] * model.bottom_layers[0][1]
        pairs = model.interaction_width - model.dimension if model.interaction == "dot" else 0
        return cls(2 * bottom, 6 * top + 6 * pairs * model.dimension, 4 * bottom - 2 * first)


class DenseTime:
    """A GPU that computes the dense part of its node's share of a step, at its rate of products.

    Kernels of later layers are launched while the first computes, so that what has to wait for
    vectors, or begins a step, waits for one launch; see :class:`host.timing.gpu.GpuMlp`.

    Parameters: ``profile`` of the GPU, ``model``. Each method takes a time in cycles and the number
    of samples and returns when its results are in GPU memory.
    """

    def __init__(self, profile: GpuProfile, model: Model):
        self._launch = cycles_of_us(profile.launch_us)
        self._operation = cycles_of_us(1 / (profile.float32_tflops * profile.gemm_fraction * 1e6))
        self._operations = DenseOperations.of(model)
        self._weights = 2 * model.mlp_parameters

    def bottom(self, time: float, samples: int) -> float:
        """The bottom MLP forward, begun at ``time``."""
        return time + self._launch + samples * self._operations.bottom * self._operation

    def top(self, time: float, samples: int) -> float:
        """Gradients of bags, where dense and pooled vectors are there at ``time``."""
        return time + self._launch + samples * self._operations.top * self._operation

    def backward(self, time: float, samples: int) -> float:
        """Gradients of all weights, where those of bags are there at ``time``."""
        return time + samples * self._operations.backward * self._operation

    def weights(self, time: float) -> float:
        """New weights, where the gradients of all nodes are summed at ``time``."""
        return time + self._launch + self._weights * self._operation
