"""Gradients of the MLPs and interactions in float32, bit-identical on every machine."""

from collections.abc import Callable

import numpy as np

from host.dlrm.float32 import canonical, quiet
from host.dlrm.interaction import added_blocks, unpadded, without_padding
from host.dlrm.mlp import Layer, forward, linear_fixed
from host.model import Model, without_blocks

__all__ = ["Linear", "activations", "interaction_backward", "mlp_backward"]

Linear = Callable[[np.ndarray, Layer], np.ndarray]
"""Function that computes a layer, like :func:`host.dlrm.mlp.linear_fixed`."""

_BLOCK_SAMPLES = 128


def activations(inputs: np.ndarray, layers: list[Layer], linear: Linear = linear_fixed,
                last_relu: bool = True) -> list[np.ndarray]:
    """Return ``inputs`` and the output of each layer, as :func:`host.dlrm.mlp.forward` does."""
    values = [np.ascontiguousarray(inputs, np.float32)]
    for number, layer in enumerate(layers):
        relu = last_relu or number + 1 < len(layers)
        values.append(forward(values[-1], [layer], linear, relu))
    return values


def mlp_backward(values: list[np.ndarray], layers: list[Layer], gradient: np.ndarray,
                 linear: Linear = linear_fixed, last_relu: bool = True,
                 inputs: bool = True) -> tuple[list[Layer], np.ndarray | None]:
    """Return the gradients of each layer as a `Layer`, and the gradients of the MLP's inputs.

    Parameters
    ----------
    values: `activations` of the whole mini-batch.
    gradient: gradient of the loss with respect to the last activation.
    linear, last_relu: as in `activations`.
    inputs: whether to compute the inputs' gradients; otherwise they are None.

    ``linear`` computes every sum, and adds a bias of +0 last. A weight's gradient sums x · g over
    the samples in order, a bias's gradient sums 1 · g likewise, and an input's gradient sums g · w
    over the outputs in ascending index. A ReLU passes a gradient if its output is above 0, and +0
    otherwise.
    """
    gradients = []
    for number in reversed(range(len(layers))):
        layer, below = layers[number], values[number]
        if last_relu or number + 1 < len(layers):
            gradient = np.where(values[number + 1] <= 0, np.float32(0), gradient)
        none = np.zeros(gradient.shape[1], np.float32)
        ones = np.ones((1, len(gradient)), np.float32)
        over_samples = Layer(gradient, none)
        gradients.append(Layer(linear(below.T, over_samples), linear(ones, over_samples)[0]))
        if number or inputs:
            gradient = linear(gradient, Layer(np.ascontiguousarray(layer.weights.T),
                                              np.zeros(below.shape[1], np.float32)))
    return gradients[::-1], gradient if inputs else None


def interaction_backward(model: Model, dense: np.ndarray, pooled: np.ndarray,
                         gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of ``dense [n, d]`` and ``pooled [n, tables, d]``.

    ``gradient [n, width]`` is the gradient with respect to the results of
    :func:`host.dlrm.interaction.interaction`.

    Let z be the dense vector followed by the pooled vectors, and g(i, j) the gradient of the dot of
    z_i and z_j. The gradient of z_i is the sum of g(i, j) · z_j over j in ascending order, with
    each product and sum rounded to float32. j = i is omitted; if vectors are also paired with
    themselves, it contributes (2 · g(i, i)) · z_i. The sum of the dense vector starts from its own
    part of ``gradient``, all other sums from their first product. A concatenation only moves its
    gradients. Each row block of a table has the gradient of the table. A computed NaN is
    0x7FC00000.
    """
    if model.first_rows:
        own, whole = interaction_backward(without_blocks(model), dense,
                                          added_blocks(model, pooled), gradient)
        return own, whole[:, list(model.originals)]
    n, tables = pooled.shape[:2]
    if gradient.shape != (n, model.interaction_width):
        raise ValueError(f"gradient must have shape {(n, model.interaction_width)!r}, "
                         f"not {gradient.shape!r}")
    if model.interaction == "cat":
        own, values = gradient[:, :model.dimension], gradient[:, model.dimension:]
    else:
        own, values = _dots_backward(model, dense, without_padding(model, pooled), gradient)
    if model.padding:
        narrow, values = values, np.zeros((n, tables * model.width), np.float32)
        values[:, unpadded(model)] = narrow.reshape(n, sum(model.table_dimensions))
    return own, values.reshape(n, tables, model.width)


def _dots_backward(model: Model, dense: np.ndarray, pooled: np.ndarray,
                   gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of ``dense [n, d]`` and ``pooled [n, tables, d]`` from those of dots."""
    (n, dimension), tables = dense.shape, pooled.shape[1]
    result = np.empty((n, tables + 1, dimension), np.float32)
    for first in range(0, n, _BLOCK_SAMPLES):
        part = slice(first, first + _BLOCK_SAMPLES)
        z = np.ascontiguousarray(np.concatenate((dense[part, None], pooled[part]), axis=1)
                                 .transpose(1, 2, 0))
        result[part] = _dot_backward(z, np.ascontiguousarray(gradient[part].T),
                                     model.interaction_itself).transpose(2, 0, 1)
    return result[:, 0], result[:, 1:]


@quiet()
def _dot_backward(z: np.ndarray, gradient: np.ndarray, itself: bool) -> np.ndarray:
    """Return the gradients of ``z [vectors, d, n]`` from those of the results ``[width, n]``."""
    vectors, dimension, n = z.shape
    i, j = np.tril_indices(vectors, 0 if itself else -1)
    pairs = np.zeros((vectors, vectors, 1, n), np.float32)
    pairs[i, j, 0] = pairs[j, i, 0] = gradient[dimension:]
    if itself:
        pairs[range(vectors), range(vectors)] *= np.float32(2)
    total = np.empty_like(z)
    total[0] = gradient[:dimension]
    if itself:
        total[0] += pairs[0, 0] * z[0]
    total[1:] = pairs[1:, 0] * z[0]
    for other in range(1, vectors):
        for some in ([slice(None)] if itself else [slice(other), slice(other + 1, None)]):
            total[some] += pairs[some, other] * z[other]
    return canonical(total)
