"""Dense part of a step on a GPU, common to all systems with GPUs."""

from collections.abc import Sequence

from host.devices.dense_work import (
    dense_update,
    interaction,
    interaction_backward,
    loss,
    mlp,
    mlp_backward,
)
from host.devices.operation import Operation
from host.systems.charge import charge, operators
from host.systems.devices import Devices
from host.systems.stage import Step
from host.systems.workload import Workload

__all__ = ["Part", "all_reduce", "backward", "bottom", "bottom_backward", "predictions", "top"]

Part = tuple[str, str, Sequence[Operation]]


def _most(w: Workload) -> int:
    """Return the samples of the largest share: the nodes work on theirs in parallel."""
    return int(w.samples.max())


def bottom(w: Workload) -> Part:
    """Return the bottom MLP forward."""
    return "bottom MLP", "mlp", mlp(_most(w), w.model.bottom_layers)


def top(w: Workload, interact: bool = True) -> list[Part]:
    """Return the interaction, unless the NIC does it, and the top MLP forward."""
    parts: list[Part] = [("top MLP", "mlp", mlp(_most(w), w.model.top_layers))]
    return ([("interaction", "irregular", interaction(_most(w), w.model))] if interact else []) \
        + parts


def backward(w: Workload) -> list[Part]:
    """Return the loss and the gradients of the top MLP, the interaction and the pooled vectors."""
    return [("loss", "mlp", loss(_most(w))),
            ("top MLP backward", "mlp", mlp_backward(_most(w), w.model.top_layers)),
            ("interaction backward", "irregular", interaction_backward(_most(w), w.model))]


def bottom_backward(w: Workload) -> Part:
    """Return the gradients of the bottom MLP."""
    return "bottom MLP backward", "mlp", mlp_backward(_most(w), w.model.bottom_layers, False)


def predictions(step: Step, w: Workload, d: Devices, after: Sequence[int]) -> int:
    """Add the copy of the predictions to host memory."""
    cost = d.copies.copy(4 * _most(w)) + d.gpu.synchronize()
    return charge(step, "predictions", "overhead", cost, after)


def all_reduce(step: Step, w: Workload, d: Devices, after: Sequence[int], wanted: bool = True
               ) -> int:
    """Sum the gradients of the MLPs over the nodes, unless not ``wanted``, and update the MLPs."""
    layers = len(w.model.bottom) + len(w.model.top)
    at = tuple(after)
    if wanted and w.nodes > 1:
        at = (charge(step, "all-reduce", "all_reduce", d.all_reduce(4 * w.model.mlp_parameters),
                     at),)
    return operators(step, d.gpu, [
        ("MLP update", "mlp", [dense_update(w.model.mlp_parameters, 2 * layers)])], at)
