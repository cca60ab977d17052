"""``bl-paper``: the paper's baseline of GPUs with sequential operators and MPI between hosts."""

from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.program import Program
from host.systems.stage import Step
from host.systems.tables import (
    by_table,
    bytes_of,
    index_bytes,
    input_bytes,
    lookups,
    pooled,
    row_updates,
)
from host.systems.workload import Workload

__all__ = ["bl_paper"]


def bl_paper(w: Workload, d: Devices, options: StepOptions) -> Step:
    """Return a step of the paper's GPU baseline (section 2.1, figure 1), fully sequential.

    MPI exchanges indices and bag offsets between hosts. The host copies them to the GPU, which
    sorts them by table. A gather per table, or a single fused gather if the software profile has
    it, pools the rows. Pooled vectors travel through host memory and MPI to the nodes of their
    samples. Training returns a gradient per bag in the same way, sums the gradients of each row,
    and applies the sums.
    """
    program, dense, fused = Program(d), Dense(w, d.kernels), d.software.fused_embedding
    keys = index_bytes(w)
    at = program.sizes(keys, ()) if w.varies else ()
    at = program.exchange("indices", "input_all_to_all", keys, at, "host")
    at = program.copy("inputs", input_bytes(w), at, calls=1 if d.software.packed_inputs else 3)
    if w.nodes > 1:
        at = program.kernels([("indices by table", "irregular", [
            by_table(w, d.kernels)])], at)
    at = program.kernels([("gather", "embedding_lookup", lookups(w, d.gpu, fused))], at)
    size = bytes_of(w, "bags")
    at = program.exchange("pooled vectors", "embedding_all_to_all", size.T, at, "mpi")
    at = program.kernels([("sums of partial vectors", "irregular", pooled(w))] * bool(pooled(w))
                         + [dense.bottom(), *dense.top()], at)
    if not options.training:
        dense.predictions(program, at)
        return program.step
    at = program.kernels(dense.backward(), at)
    at = program.exchange("gradients", "backward_all_to_all", size, at, "mpi")
    at = program.kernels([("row update", "backward_all_to_all",
                           row_updates(w, d.gpu, fused))], at)
    program.wait(dense.learn(program, at, options))
    return program.step
