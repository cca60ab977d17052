"""``bl-paper``: the paper's baseline of GPUs with sequential operators and MPI between hosts."""

from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.program import Program
from host.systems.stage import Step
from host.systems.tables import INDEX, by_table, input_bytes, lookups, row_updates, vector_bytes
from host.systems.workload import Workload

__all__ = ["bl_paper"]


def bl_paper(w: Workload, d: Devices, options: StepOptions) -> Step:
    """Return a step of the paper's GPU baseline (section 2.1, figure 1), fully sequential.

    MPI exchanges indices and bag offsets between hosts; they are copied to the GPU and sorted by
    table. One gather per table, or one for all if the software profile fuses them, pools the rows.
    Pooled vectors go through host memory and MPI to the nodes of their samples. Training sends one
    gradient per bag back the same way, and sums and applies those of each row.
    """
    program, dense, fused = Program(d), Dense(w, d.kernels), d.software.fused_embedding
    at: tuple[int, ...] = program.exchange(
        "indices", "input_all_to_all", INDEX * (w.lookups + w.bags), (), "host")
    at = program.copy("inputs", input_bytes(w), at, calls=1 if d.software.packed_inputs else 3)
    if w.nodes > 1:
        at = program.kernels([("indices by table", "irregular", [
            by_table(int(w.lookups.sum(axis=0).max()), d.kernels)])], at)
    at = program.kernels([("gather", "embedding_lookup", lookups(w, d.gpu, fused))], at)
    size = vector_bytes(w)
    at = program.exchange("pooled vectors", "embedding_all_to_all", size * w.bags.T, at, "mpi")
    at = program.kernels([dense.bottom(), *dense.top()], at)
    if not options.training:
        dense.predictions(program, at)
        return program.step
    at = program.kernels(dense.backward(), at)
    at = program.exchange("gradients", "backward_all_to_all", size * w.bags, at, "mpi")
    at = program.kernels([("row update", "backward_all_to_all",
                           row_updates(w, d.gpu, fused))], at)
    program.wait(dense.learn(program, at, options))
    return program.step
