"""Operations of a DLRM's dense part: its MLPs, the interaction, the loss and the optimizer.

Everything is float32. An MLP's layers are pairs (inputs, outputs) as in :class:`host.model.Model`.
``level`` is the kernel fusion, the same for all compared systems:

=====  ============================================================================================
level  kernels
=====  ============================================================================================
0      a kernel per operator of the framework; the matrix product adds the bias
1      activations and the gradients of biases are parts of the matrix products
2      also a single kernel each for the interaction, the order of indices, and all weights
3      also a single kernel for an MLP: its thread blocks wait for each other between layers
=====  ============================================================================================
"""

from collections.abc import Sequence
from dataclasses import replace

from host.devices.operation import TILE, Operation
from host.model import Model

__all__ = ["LEVELS", "cast", "concat", "dense_update", "elementwise", "interaction",
           "interaction_backward", "linear", "loss", "mlp", "mlp_backward", "product"]

Layers = Sequence[tuple[int, int]]

LEVELS = (0, 1, 2, 3)
"""Levels of kernel fusion, from none to whole MLPs."""


def elementwise(values: int, inputs: int = 1, name: str = "elementwise") -> Operation:
    """Compute ``values`` values from ``inputs`` arrays of that size, an operation per value."""
    return Operation(name, 4 * values * (inputs + 1), flops=values * inputs)


def cast(values: int, before: int, after: int) -> Operation:
    """Convert ``values`` values from ``before`` to ``after`` bits each."""
    return Operation("cast", (before + after) * values // 8, flops=values)


def concat(values: int) -> Operation:
    """Copy ``values`` values into one concatenated array."""
    return Operation("concat", 8 * values)


def product(rows: int, inner: int, columns: int, batch: int = 1,
            name: str = "product") -> Operation:
    """Multiply ``batch`` pairs of matrices, ``rows`` by ``inner`` and ``inner`` by ``columns``."""
    return Operation(name, 4 * batch * (rows * inner + inner * columns + rows * columns),
                     flops=2 * batch * rows * inner * columns, matrix=True,
                     tiles=batch * -(-rows // TILE) * -(-columns // TILE),
                     tile_flops=2 * TILE * TILE * inner)


def linear(samples: int, inputs: int, outputs: int) -> Operation:
    """Apply a layer's weights and biases to ``samples`` samples."""
    work = product(samples, inputs, outputs)
    return replace(work, name="linear", streamed_bytes=work.streamed_bytes + 4 * outputs,
                   flops=work.flops + samples * outputs)


def mlp(samples: int, layers: Layers, level: int = 0) -> tuple[Operation, ...]:
    """Apply layers, each followed by its activation: ReLU or, for the last, a sigmoid."""
    products = [linear(samples, inputs, outputs) for inputs, outputs in layers]
    if level >= 3:
        return (_one_kernel("mlp", products),)
    if level >= 1:
        return tuple(products)
    return tuple(operation for work, (_, outputs) in zip(products, layers) for operation in (
        work, elementwise(samples * outputs, name="activation")))


def mlp_backward(samples: int, layers: Layers, input_gradient: bool = True,
                 level: int = 0) -> tuple[Operation, ...]:
    """Compute the gradients of weights, biases and the layers' inputs.

    input_gradient: whether to compute the gradient of the first layer's input, as for a top MLP.
    """
    result = []
    for index, (inputs, outputs) in reversed(list(enumerate(layers))):
        weights = product(inputs, samples, outputs, name="weight_gradient")
        if level:
            result.append(weights)
        else:
            result += [elementwise(samples * outputs, 2, "activation_backward"), weights,
                       Operation("bias_gradient", 4 * (samples + 1) * outputs,
                                 flops=samples * outputs)]
        if index or input_gradient:
            result.append(product(samples, outputs, inputs, name="input_gradient"))
    return (_one_kernel("mlp_backward", result),) if level >= 3 and result else tuple(result)


def _one_kernel(name: str, products: Sequence[Operation]) -> Operation:
    """Return a kernel that contains several products, each with its own tiles.

    Its tiles give the same duration as the products in sequence.
    """
    each = sum(work.tile_flops for work in products)
    return Operation(name, sum(work.streamed_bytes for work in products),
                     flops=sum(work.flops for work in products), matrix=True, tile_flops=each,
                     tiles=sum(work.tiles * work.tile_flops for work in products) / each)


def interaction(samples: int, model: Model, level: int = 0) -> tuple[Operation, ...]:
    """Concatenate the vectors, multiply all pairs, select the pairs, and concatenate again.

    facebookresearch/dlrm does this for ``dot``: a batched product to whole n by n matrices, from
    which an index selects the pairs below the diagonal. ``cat`` needs only the first step. From
    level 2 on, a single kernel reads the vectors and writes the concatenated result.
    """
    if model.interaction == "cat":
        return (concat(samples * model.interaction_width),)
    vectors = model.dot_vectors
    joined = concat(samples * vectors * model.dimension)
    pairs = model.interaction_width - model.dimension
    if level >= 2:
        return (Operation(
            "interaction", 4 * samples * (vectors * model.dimension + model.interaction_width),
            flops=2 * samples * pairs * model.dimension, matrix=True, tiles=samples),)
    return (joined, product(vectors, model.dimension, vectors, samples, "pairs"),
            Operation("flatten", 8 * samples * pairs + 16 * pairs),
            concat(samples * model.interaction_width))


def interaction_backward(samples: int, model: Model, level: int = 0) -> tuple[Operation, ...]:
    """Compute the gradients of the dense and pooled vectors from the gradient of the interaction.

    For ``dot``, the pairs are written to zeroed n by n matrices, which are multiplied with the
    vectors from either side; the products are summed. Frameworks that sort the indices of such
    writes do more work. For ``cat``, and at the end of ``dot``, the gradients are views. From level
    2 on, a single kernel reads vectors and gradients and writes the gradients of the vectors.
    """
    vectors = model.dot_vectors
    if model.interaction == "cat":
        return ()
    pairs, square = model.interaction_width - model.dimension, samples * vectors * vectors
    values = samples * vectors * model.dimension
    if level >= 2:
        return (Operation(
            "interaction_backward", 4 * (2 * values + samples * model.interaction_width),
            flops=4 * samples * pairs * model.dimension, matrix=True, tiles=samples),)
    return (Operation("zero", 4 * square),
            Operation("unflatten", 8 * samples * pairs + 16 * pairs),
            product(vectors, vectors, model.dimension, samples, "pairs_backward"),
            product(vectors, vectors, model.dimension, samples, "pairs_backward"),
            elementwise(values, 2, "sum"),
            elementwise(samples * model.dimension, 2, "sum"))


def loss(samples: int) -> tuple[Operation, ...]:
    """Binary cross-entropy of predictions and labels, its mean, and its gradient."""
    return (elementwise(samples, 2, "loss"), Operation("mean", 4 * samples, flops=samples),
            elementwise(samples, 3, "loss_backward"))


def dense_update(parameters: int, tensors: int = 1, level: int = 0) -> Operation:
    """Update ``parameters`` weights and biases by SGD.

    An operator for each of ``tensors``; from level 2 on, a single operator for all tensors.
    """
    calls = 1 if level >= 2 else max(1, tensors)
    return Operation("dense_update", 12 * parameters, flops=2 * parameters, operators=calls,
                     kernels=calls)
