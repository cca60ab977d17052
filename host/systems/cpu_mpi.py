"""``cpu-mpi``: CPUs and MPI without GPUs, the baseline of the paper's scalability (section 5.3)."""

from host.systems.charge import charge
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.program import Work
from host.systems.stage import Step
from host.systems.tables import by_table, bytes_of, index_bytes, lookups, row_updates
from host.systems.workload import Workload

__all__ = ["cpu_mpi"]


def cpu_mpi(w: Workload, d: Devices, options: StepOptions) -> Step:
    """Return a fully sequential step on CPUs, without copies and launches.

    Framework calls cost the CPU profile's ``operator_us``; the software profile is ignored.
    """
    step, dense = Step(), Dense(w)
    size = bytes_of(w, "bags")

    def exchange(name: str, phase: str, traffic, at: tuple[int, ...]) -> tuple[int, ...]:
        return (charge(step, name, phase, d.cpu_mpi.all_to_all(traffic), at),) \
            if w.nodes > 1 else at

    def compute(at: tuple[int, ...], *parts: Work) -> tuple[int, ...]:
        for name, phase, work in parts:
            at = (charge(step, name, phase, d.cpu.run(*work), at),)
        return at

    at = exchange("indices", "input_all_to_all", index_bytes(w), ())
    if w.nodes > 1:
        at = compute(at, ("indices by table", "irregular", [by_table(w, 0)]))
    at = compute(at, ("gather", "embedding_lookup", lookups(w, d.cpu)))
    at = exchange("pooled vectors", "embedding_all_to_all", size.T, at)
    at = compute(at, dense.bottom(), *dense.top())
    if not options.training:
        return step
    at = compute(at, *dense.backward(), dense.bottom_backward())
    at = exchange("gradients", "backward_all_to_all", size, at)
    at = compute(at, ("row update", "backward_all_to_all", row_updates(w, d.cpu)))
    if options.all_reduce and w.nodes > 1:
        at = (charge(step, "all-reduce", "all_reduce",
                     d.cpu_mpi.all_reduce(4 * w.model.mlp_parameters), at),)
    compute(at, dense.update())
    return step
