"""``bl-tuned``: a GPU baseline with every optimisation that software alone can make."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import product

import numpy as np

from host.devices.cost import Cost
from host.devices.dense_work import dense_update
from host.devices.embedding_work import gather, layout, segment_sum, unique
from host.systems import dense
from host.systems.charge import charge, longest_us, operators
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.stage import Step
from host.systems.tables import INDEX, input_bytes, lookup_cost, update_cost, vector_bytes
from host.systems.workload import Workload
from rtl.formats import DescriptorKind

__all__ = ["SMALL_ROWS", "Tuning", "bl_tuned", "tunings"]

SMALL_ROWS = 10_000
"""Most rows of a table that is copied to every node: a choice. 640 KB at dimension 16."""


@dataclass(frozen=True)
class Tuning:
    """Optional optimisations of a baseline.

    Members
    -------
    fused: one operator looks up, and one updates, all tables of a node.
    nccl: GPUs exchange data between their memories; otherwise MPI does, through host memory.
    dedupe: a requester asks for each key once, and sends one gradient for it.
    replicate: every node has a copy of each table of at most `SMALL_ROWS` rows; in training their
        gradients are summed over the nodes, like those of the MLPs.
    overlap: the bottom MLP and the sum of the MLPs' gradients overlap the exchange of vectors.
    """

    fused: bool = True
    nccl: bool = True
    dedupe: bool = True
    replicate: bool = True
    overlap: bool = True


def tunings() -> Iterator[Tuning]:
    """Yield every combination of optimisations."""
    for chosen in product((True, False), repeat=len(fields(Tuning))):
        yield Tuning(*chosen)


def bl_tuned(w: Workload, small: Workload, d: Devices, options: StepOptions,
             tuning: Tuning | None = None) -> Step:
    """Return a step of the tuned GPU baseline.

    ``small``: the same mini-batch under the plan with replicated small tables, see
    :func:`host.systems.workload.replicate_small`. Without a ``tuning``, the fastest step is
    returned: an optimisation that costs more than it saves is left out.
    """
    if tuning is None:
        steps = [bl_tuned(w, small, d, options, choice) for choice in tunings()]
        return min(steps, key=longest_us)
    return _Tuned(small if tuning.replicate else w, d, options, tuning).build()


class _Tuned:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, tuning: Tuning):
        self._w, self._d, self._options, self._tuning = w, d, options, tuning
        self._step = Step()
        self._vectors = w.requested if tuning.dedupe else w.bags

    def build(self) -> Step:
        w, d, step, tuning = self._w, self._d, self._step, self._tuning
        copied = charge(step, "inputs", "overhead", d.copies.copy(input_bytes(w, False), 3))
        vectors, bottom = self._forward(copied)
        at = (operators(step, d.gpu, [*([] if tuning.overlap else [dense.bottom(w)]),
                                      *dense.top(w)], (*vectors, *bottom)),)
        if not self._options.training:
            dense.predictions(step, w, d, at)
            return step
        at = (operators(step, d.gpu, dense.backward(w), at),)
        rows = self._rows(at if tuning.overlap else ())
        weights = self._weights(at)
        if not tuning.overlap:
            rows = self._rows((weights,))
        charge(step, "end", "overhead", d.gpu.synchronize(), (*rows, weights))
        return step

    def _forward(self, copied: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the last stages of the pooled vectors, and of the bottom MLP if it overlaps."""
        w, d, step, tuning = self._w, self._d, self._step, self._tuning
        indices = w.requested if tuning.dedupe else w.lookups + w.bags
        at: tuple[int, ...] = (copied,)
        if tuning.dedupe:
            # The host learns the message sizes only after the GPU has found them.
            at = (operators(step, d.gpu, [("different keys", "irregular", [
                unique(int(w.lookups.sum(axis=1).max()))])], at),)
            at = (charge(step, "sizes", "overhead",
                         d.gpu.synchronize() + d.copies.copy(INDEX * w.nodes), at),)
        at = self._send("indices", "input_all_to_all", INDEX * indices, at)
        if w.nodes > 1:
            most = int(indices.sum(axis=0).max())
            at = (operators(step, d.gpu, [("indices by table", "irregular",
                                           [layout(most, operators=2)])], at),)
        at = (charge(step, "gather", "embedding_lookup",
                     lookup_cost(w, d.gpu, tuning.fused, tuning.dedupe), at),)
        bottom = (operators(step, d.gpu, [dense.bottom(w)], (copied,)),) if tuning.overlap else ()
        at = self._send("vectors", "embedding_all_to_all", vector_bytes(w) * self._vectors.T, at)
        if tuning.dedupe:
            rows, bags = int(w.lookups.sum(axis=1).max()), int(w.bags.sum(axis=1).max())
            at = (operators(step, d.gpu, [("vectors to bags", "irregular", [
                gather(rows, bags, w.model.dimension, 1)])], at),)
        return at, bottom

    def _rows(self, after: tuple[int, ...]) -> tuple[int, ...]:
        """Exchange gradients of rows and apply them; do nothing if ``after`` is empty."""
        w, d, step, tuning = self._w, self._d, self._step, self._tuning
        if not after:
            return ()
        at = after
        if tuning.dedupe:
            rows, keys = int(w.lookups.sum(axis=1).max()), int(w.requested.sum(axis=1).max())
            at = (operators(step, d.gpu, [("gradients of keys", "backward_all_to_all", [
                segment_sum(rows, keys, w.model.dimension)])], at),)
        at = self._send("gradients", "backward_all_to_all", vector_bytes(w) * self._vectors, at)
        return (charge(step, "row update", "backward_all_to_all",
                       update_cost(w, d.gpu, tuning.fused, tuning.dedupe), at),)

    def _weights(self, after: tuple[int, ...]) -> int:
        """Run the bottom MLP backward, sum the MLPs' gradients, and apply them."""
        w, d, step = self._w, self._d, self._step
        at = operators(step, d.gpu, [dense.bottom_backward(w)], after)
        if w.nodes > 1 and (copied := _copied_rows(w)):
            at = charge(step, "gradients of copies", "all_reduce",
                        d.all_reduce(vector_bytes(w) * copied), (at,))
            at = operators(step, d.gpu, [("update of copies", "all_reduce", [
                dense_update(copied * w.model.dimension)])], (at,))
        return dense.all_reduce(step, w, d, (at,), self._options.all_reduce)

    def _send(self, name: str, phase: str, traffic: np.ndarray,
              after: tuple[int, ...]) -> tuple[int, ...]:
        w, d, step = self._w, self._d, self._step
        if w.nodes == 1:
            return after
        exchange: Callable[[np.ndarray], Cost] = d.nccl.all_to_all
        if not self._tuning.nccl:
            after = (charge(step, name, phase, d.gpu.synchronize(), after),)
            exchange = d.mpi.all_to_all
        return (charge(step, name, phase, exchange(traffic), after),)


def _copied_rows(w: Workload) -> int:
    """Return the rows of the tables that every node has a copy of."""
    return sum(table.rows for table in w.plan.tables if table.kind == DescriptorKind.REPLICATED)
