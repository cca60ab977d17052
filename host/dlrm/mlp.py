"""Multi-layer perceptrons in float32 whose results are bit-identical on every machine."""

from dataclasses import dataclass

import numpy as np

from host.dlrm.float32 import canonical, quiet
from host.hashing import GOLDEN, mix64, mix64_int

__all__ = ["MOST_WEIGHTS", "Layer", "forward", "initial_layers", "linear_blas", "linear_fixed"]

MOST_WEIGHTS = 1 << 27
"""Maximum weights of an MLP: 0.5 GiB, and twice as much again during initialisation."""

_BLOCK_DRAWN = 1 << 16
_BLOCK_SAMPLES = 256
_BLOCK_VALUES = 1 << 15
"""Size of a block, chosen so that its sums and products stay in the second-level cache."""


@dataclass(frozen=True)
class Layer:
    """A linear layer: float32 ``weights [inputs, outputs]`` and ``biases [outputs]``."""

    weights: np.ndarray
    biases: np.ndarray


def _normals(seed: int, count: int) -> np.ndarray:
    """Return ``count`` near-normal float64 values of mean 0 and deviation 1.

    Each is the sum of twelve 16-bit uniforms from three hashes: exact integers, and therefore
    identical on every machine and with every NumPy version. ``log`` and NumPy's generators do not
    guarantee this.
    """
    values = np.empty(count)
    for first in range(0, count, _BLOCK_DRAWN):
        last = min(count, first + _BLOCK_DRAWN)
        index = np.arange(3 * first + 1, 3 * last + 1, dtype=np.uint64)
        parts = mix64(index * np.uint64(GOLDEN) + np.uint64(seed)).view(np.uint16)
        total = parts.astype(np.int64).reshape(last - first, 12).sum(axis=1)
        # The sum of twelve uniforms on 0 … 65535 has mean 12 · 32767.5 and variance 65536² - 1.
        values[first:last] = (total - 12 * 65535 // 2) / np.sqrt(65536.0 ** 2 - 1)
    return values


def initial_layers(shapes: tuple[tuple[int, int], ...], seed: int) -> list[Layer]:
    """Return DLRM's initial layers, one per (inputs, outputs) of ``shapes``, from ``seed``.

    Weights are normal with deviation √(2 / (inputs + outputs)), biases with √(1 / outputs). Raises
    ``ValueError`` for more than `MOST_WEIGHTS`.
    """
    wanted = sum(inputs * outputs for inputs, outputs in shapes)
    if wanted > MOST_WEIGHTS:
        raise ValueError(f"layers of an MLP must have at most {MOST_WEIGHTS:,} weights, "
                         f"not {wanted:,}")
    layers = []
    for number, (inputs, outputs) in enumerate(shapes):
        weights = _normals(mix64_int(seed, number, 0), inputs * outputs)
        biases = _normals(mix64_int(seed, number, 1), outputs)
        layers.append(Layer(
            (weights * np.sqrt(2.0 / (inputs + outputs))).astype(np.float32)
            .reshape(inputs, outputs),
            (biases * np.sqrt(1.0 / outputs)).astype(np.float32)))
    return layers


@quiet()
def linear_fixed(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Return ``inputs @ weights + biases`` with every product and sum rounded to float32.

    Sums start from the first product and run in ascending index; the bias comes last. A NaN is
    0x7FC00000.

    Every operation is element-wise, so a sample's result depends neither on its neighbours nor on
    the machine. ``inputs`` is float32 ``[n, inputs]``.
    """
    n, depth = inputs.shape
    width = layer.weights.shape[1]
    result = np.empty((n, width), np.float32)
    step = max(1, min(width, _BLOCK_VALUES // min(max(n, 1), _BLOCK_SAMPLES)))
    for first in range(0, n, _BLOCK_SAMPLES):
        columns = np.ascontiguousarray(inputs[first:first + _BLOCK_SAMPLES].T)
        for left in range(0, width, step):
            weights = np.ascontiguousarray(layer.weights[:, left:left + step])
            total = weights[0][:, None] * columns[0]
            product = np.empty_like(total)
            for k in range(1, depth):
                np.multiply(weights[k][:, None], columns[k], out=product)
                total += product
            total += layer.biases[left:left + step, None]
            result[first:first + _BLOCK_SAMPLES, left:left + step] = canonical(total).T
    return result


@quiet()
def linear_blas(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Return ``inputs @ weights + biases`` by BLAS.

    Fast, but its last bits depend on the number of rows, on the kernel and on the machine.
    """
    return canonical(inputs @ layer.weights + layer.biases)


def forward(inputs: np.ndarray, layers: list[Layer], linear=linear_fixed,
            last_relu: bool = True) -> np.ndarray:
    """Run ``layers`` with a ReLU after each layer; after the last layer only if ``last_relu``."""
    values = np.ascontiguousarray(inputs, np.float32)
    for number, layer in enumerate(layers):
        values = linear(values, layer)
        if last_relu or number + 1 < len(layers):
            values = np.maximum(values, np.float32(0))
            values += np.float32(0)  # converts -0 from maximum to +0
    return values
