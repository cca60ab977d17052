"""Dense part of a step on a GPU, common to all systems with GPUs."""

from host.devices.dense_work import (
    dense_update,
    interaction,
    interaction_backward,
    loss,
    mlp,
    mlp_backward,
)
from host.once import once
from host.systems.options import StepOptions
from host.systems.program import After, Program, Work
from host.systems.workload import Workload

__all__ = ["Dense"]


class Dense:
    """Dense work of the node with the largest share; nodes work in parallel.

    Parameters: ``w``; ``level``: kernel fusion (:mod:`host.devices.dense_work`).
    """

    def __init__(self, w: Workload, level: int = 0):
        self._w, self._model, self._nodes, self._level = w, w.model, w.nodes, level
        self._samples = int(w.samples.max())

    def bottom(self) -> Work:
        """Return the bottom MLP forward."""
        return _bottom(self._w, self._level)

    def top(self, interact: bool = True) -> list[Work]:
        """Return the interaction, unless the NIC does it, and the top MLP forward."""
        return _top(self._w, self._level, interact)

    def backward(self) -> list[Work]:
        """Return the loss and the gradients of top MLP, interaction and pooled vectors."""
        return [("loss", "mlp", loss(self._samples)),
                ("top MLP backward", "mlp", mlp_backward(
                    self._samples, self._model.top_layers, level=self._level)),
                ("interaction backward", "irregular", interaction_backward(
                    self._samples, self._model, self._level))]

    def bottom_backward(self) -> Work:
        """Return the gradients of the bottom MLP."""
        return "bottom MLP backward", "mlp", mlp_backward(
            self._samples, self._model.bottom_layers, False, self._level)

    def update(self) -> Work:
        """Return the update of the MLPs by their summed gradients."""
        layers = len(self._model.bottom) + len(self._model.top)
        return "MLP update", "mlp", [dense_update(self._model.mlp_parameters, 2 * layers,
                                                  self._level)]

    def predictions(self, program: Program, after: After) -> None:
        """Add the copy of the predictions to host memory, and the host's wait for it."""
        program.wait(program.copy("predictions", 4 * self._samples, after, to_gpu=False))

    def learn(self, program: Program, after: After, options: StepOptions) -> tuple[int, ...]:
        """Run the bottom MLP backward, all-reduce the gradients of the MLPs, and update the MLPs.

        ``options`` selects the all-reduce. Return the last stage.
        """
        if not options.all_reduce or self._nodes == 1:
            return program.kernels([self.bottom_backward(), self.update()], after)
        top = 4 * sum((inputs + 1) * outputs for inputs, outputs in self._model.top_layers)
        whole, early = 4 * self._model.mlp_parameters, ()
        if options.buckets:
            early = program.all_reduce("all-reduce of the top MLP", top, after, options.nccl)
            whole -= top
        at = program.kernels([self.bottom_backward()], after)
        at = program.all_reduce("all-reduce", whole, at, options.nccl)
        return program.kernels([self.update()], (*early, *at))


@once
def _bottom(w: Workload, level: int) -> Work:
    return "bottom MLP", "mlp", mlp(int(w.samples.max()), w.model.bottom_layers, level)


@once
def _top(w: Workload, level: int, interact: bool) -> list[Work]:
    samples = int(w.samples.max())
    parts: list[Work] = [("top MLP", "mlp", mlp(samples, w.model.top_layers, level))]
    if interact:
        parts.insert(0, ("interaction", "irregular", interaction(samples, w.model, level)))
    return parts
