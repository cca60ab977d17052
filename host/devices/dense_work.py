"""Operations of a DLRM's dense part: its MLPs, the interaction, the loss and the optimizer.

float32 throughout. Operators are those of an eager framework, each with one kernel; a bias is added
in its product. An MLP's layers are pairs (inputs, outputs), as :class:`host.model.Model` has them.
"""

from collections.abc import Sequence

from host.devices.operation import Operation
from host.model import Model

__all__ = ["concat", "dense_update", "elementwise", "interaction", "interaction_backward",
           "linear", "loss", "mlp", "mlp_backward", "product", "transpose"]

Layers = Sequence[tuple[int, int]]


def elementwise(values: int, inputs: int = 1, name: str = "elementwise") -> Operation:
    """Make ``values`` values of as many of each of ``inputs`` inputs, one operation each."""
    return Operation(name, 4 * values * (inputs + 1), flops=values * inputs)


def concat(values: int) -> Operation:
    """Copy ``values`` values behind each other."""
    return Operation("concat", 8 * values)


def transpose(values: int) -> Operation:
    """Copy ``values`` values into another order of their dimensions."""
    return Operation("transpose", 8 * values)


def product(rows: int, inner: int, columns: int, batch: int = 1,
            name: str = "product") -> Operation:
    """Multiply ``batch`` pairs of matrices, ``rows`` by ``inner`` and ``inner`` by ``columns``."""
    return Operation(name, 4 * batch * (rows * inner + inner * columns + rows * columns),
                     flops=2 * batch * rows * inner * columns, matrix=True)


def linear(samples: int, inputs: int, outputs: int) -> Operation:
    """Apply a layer, its weights and biases, to ``samples`` samples."""
    work = product(samples, inputs, outputs)
    return Operation("linear", work.streamed_bytes + 4 * outputs,
                     flops=work.flops + samples * outputs, matrix=True)


def mlp(samples: int, layers: Layers) -> tuple[Operation, ...]:
    """Apply layers with the activation behind each: ReLU or, at the end, a sigmoid."""
    return tuple(operation for inputs, outputs in layers for operation in (
        linear(samples, inputs, outputs), elementwise(samples * outputs, name="activation")))


def mlp_backward(samples: int, layers: Layers,
                 input_gradient: bool = True) -> tuple[Operation, ...]:
    """Make the gradients of weights, biases and, between layers, of their inputs.

    ``input_gradient``: whether that of the first layer's input is wanted too, as of a top MLP's.
    """
    result = []
    for index, (inputs, outputs) in reversed(list(enumerate(layers))):
        result += [elementwise(samples * outputs, 2, "activation_backward"),
                   product(inputs, samples, outputs, name="weight_gradient"),
                   Operation("bias_gradient", 4 * (samples + 1) * outputs, flops=samples * outputs)]
        if index or input_gradient:
            result.append(product(samples, outputs, inputs, name="input_gradient"))
    return tuple(result)


def interaction(samples: int, model: Model) -> tuple[Operation, ...]:
    """Join the dense and pooled vectors; multiply each with each; take the pairs; join again.

    What facebookresearch/dlrm does for ``dot``: a batched product of whole n by n matrices, of
    which the pairs below the diagonal are taken by index. For ``cat`` the first is all.
    """
    vectors = model.tables + 1
    joined = concat(samples * vectors * model.dimension)
    if model.interaction == "cat":
        return (joined,)
    pairs = model.interaction_width - model.dimension
    return (joined, product(vectors, model.dimension, vectors, samples, "pairs"),
            Operation("flatten", 8 * samples * pairs + 16 * pairs),
            concat(samples * model.interaction_width))


def interaction_backward(samples: int, model: Model) -> tuple[Operation, ...]:
    """Make the gradients of the dense and pooled vectors of that of the interaction.

    For ``dot``: the pairs are put into zeroed n by n matrices, which multiply the vectors from
    either side; both are summed. Frameworks that sort the indices when they put do more than that.
    For ``cat``, and for the vectors of ``dot`` at the end, gradients are views.
    """
    vectors = model.tables + 1
    if model.interaction == "cat":
        return ()
    pairs, square = model.interaction_width - model.dimension, samples * vectors * vectors
    values = samples * vectors * model.dimension
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


def dense_update(parameters: int, tensors: int = 1) -> Operation:
    """Update ``parameters`` weights and biases with SGD, one operator for each of ``tensors``."""
    calls = max(1, tensors)
    return Operation("dense_update", 12 * parameters, flops=2 * parameters, operators=calls,
                     kernels=calls)
