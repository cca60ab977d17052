"""``bl-paper``: the paper's baseline of GPUs with sequential operators and MPI between hosts."""

from collections.abc import Sequence

import numpy as np

from host.devices.embedding_work import layout
from host.systems import dense
from host.systems.charge import charge, operators
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.stage import Step
from host.systems.tables import INDEX, input_bytes, lookup_cost, update_cost, vector_bytes
from host.systems.workload import Workload

__all__ = ["bl_paper"]


def bl_paper(w: Workload, d: Devices, options: StepOptions) -> Step:
    """Return a step of the paper's GPU baseline (section 2.1, figure 1), fully sequential.

    MPI exchanges indices and bag offsets between hosts; they are copied to the GPU and sorted by
    table. One gather per table, or one for all if the software profile fuses them, pools the rows.
    Pooled vectors go through host memory and MPI to the nodes of their samples. Training sends one
    gradient per bag back the same way, and sums and applies those of each row.
    """
    step, fused = Step(), d.software.fused_embedding
    at: tuple[int, ...] = ()
    if w.nodes > 1:
        at = (charge(step, "indices", "input_all_to_all",
                     d.host_mpi.all_to_all(INDEX * (w.lookups + w.bags))),)
    at = (charge(step, "inputs", "overhead", d.copies.copy(input_bytes(w), 3), at),)
    if w.nodes > 1:
        most = int(w.lookups.sum(axis=0).max())
        at = (operators(step, d.gpu, [("indices by table", "irregular",
                                       [layout(most, operators=2)])], at),)
    at = (charge(step, "gather", "embedding_lookup", lookup_cost(w, d.gpu, fused), at),)
    at = _exchange(step, "pooled vectors", "embedding_all_to_all", w, d, w.bags.T, at)
    at = (operators(step, d.gpu, [dense.bottom(w), *dense.top(w)], at),)
    if not options.training:
        dense.predictions(step, w, d, at)
        return step
    at = (operators(step, d.gpu, [*dense.backward(w), dense.bottom_backward(w)], at),)
    at = _exchange(step, "gradients", "backward_all_to_all", w, d, w.bags, at)
    at = (charge(step, "row update", "backward_all_to_all", update_cost(w, d.gpu, fused), at),)
    at = (dense.all_reduce(step, w, d, at, options.all_reduce),)
    charge(step, "end", "overhead", d.gpu.synchronize(), at)
    return step


def _exchange(step: Step, name: str, phase: str, w: Workload, d: Devices, vectors: np.ndarray,
              after: Sequence[int]) -> tuple[int, ...]:
    """Send ``vectors`` ``[from, to]`` through host memory after the host has waited for the GPU."""
    if w.nodes == 1:
        return tuple(after)
    at = charge(step, name, phase, d.gpu.synchronize(), after)
    return (charge(step, name, phase, d.mpi.all_to_all(vector_bytes(w) * vectors), (at,)),)
