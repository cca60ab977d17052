"""``cpu-mpi``: CPUs and MPI without GPUs, the base of the paper's scalability (section 5.3)."""

from host.devices.dense_work import dense_update
from host.devices.embedding_work import layout
from host.systems import dense
from host.systems.charge import charge
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.stage import Step
from host.systems.tables import INDEX, lookup_cost, update_cost, vector_bytes
from host.systems.workload import Workload

__all__ = ["cpu_mpi"]


def cpu_mpi(w: Workload, d: Devices, options: StepOptions) -> Step:
    """Return a fully sequential step on CPUs, without copies and launches.

    The GPUs' software profile does not apply; the CPU's own ``operator_us`` does.
    """
    step = Step()
    size = vector_bytes(w)

    def exchange(name: str, phase: str, traffic, at: tuple[int, ...]) -> tuple[int, ...]:
        return (charge(step, name, phase, d.cpu_mpi.all_to_all(traffic), at),) \
            if w.nodes > 1 else at

    def compute(at: tuple[int, ...], *parts: dense.Part) -> tuple[int, ...]:
        for name, phase, work in parts:
            at = (charge(step, name, phase, d.cpu.run(*work), at),)
        return at

    at = exchange("indices", "input_all_to_all", INDEX * (w.lookups + w.bags), ())
    if w.nodes > 1:
        most = int(w.lookups.sum(axis=0).max())
        at = compute(at, ("indices by table", "irregular", [layout(most, operators=2)]))
    at = (charge(step, "gather", "embedding_lookup", lookup_cost(w, d.cpu), at),)
    at = exchange("pooled vectors", "embedding_all_to_all", size * w.bags.T, at)
    at = compute(at, dense.bottom(w), *dense.top(w))
    if not options.training:
        return step
    at = compute(at, *dense.backward(w), dense.bottom_backward(w))
    at = exchange("gradients", "backward_all_to_all", size * w.bags, at)
    at = (charge(step, "row update", "backward_all_to_all", update_cost(w, d.cpu), at),)
    if options.all_reduce and w.nodes > 1:
        at = (charge(step, "all-reduce", "all_reduce",
                     d.cpu_mpi.all_reduce(4 * w.model.mlp_parameters), at),)
    tensors = 2 * (len(w.model.bottom) + len(w.model.top))
    compute(at, ("MLP update", "mlp", [dense_update(w.model.mlp_parameters, tensors)]))
    return step
