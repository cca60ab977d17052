"""``bl-tuned``: a GPU baseline with every optimisation that software alone can make."""

from dataclasses import replace

from host.devices.dense_work import dense_update
from host.devices.embedding_work import gather, segment_sum, unique
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.program import After, Program
from host.systems.stage import Step
from host.systems.tables import (
    INDEX,
    by_table,
    bytes_of,
    copied_values,
    in_shares,
    input_bytes,
    lookups,
    row_updates,
    rows_of_tables,
)
from host.systems.tuning import Tuning
from host.systems.workload import Workload

__all__ = ["bl_tuned"]


def bl_tuned(w: Workload, d: Devices, options: StepOptions, tuning: Tuning) -> Step:
    """Return a step of the tuned GPU baseline.

    Inputs are a single packed copy. If the software profile has CUDA graphs, all work between two
    waits of the host is one graph.

    w: mini-batch under a plan that replicates the tables copied by ``tuning``, see
    :meth:`host.placement.shard.ShardPlan.with_copies`.
    """
    return _Tuned(w, d, options, tuning).build()


class _Tuned:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, tuning: Tuning):
        self._w, self._d, self._tuning = w, d, tuning
        self._options = replace(options, buckets=tuning.buckets, nccl=tuning.nccl)
        self._program, self._dense = Program(d), Dense(w, d.kernels)
        self._library = "nccl" if tuning.nccl else "mpi"
        self._vectors = bytes_of(w, "requested" if tuning.dedupe else "bags")

    def build(self) -> Step:
        """Return the step."""
        program, dense, tuning = self._program, self._dense, self._tuning
        before = self._indices((), "host") if tuning.host_indices else ()
        copied = program.copy("inputs", input_bytes(self._w, tuning.host_indices), before)
        vectors, bottom = self._forward(copied)
        if not tuning.overlap:
            bottom = program.kernels([dense.bottom()], vectors)
        at = program.kernels(dense.top(), (*vectors, *bottom))
        if not self._options.training:
            dense.predictions(program, at)
            return program.step
        at = self._copies(program.kernels(dense.backward(), at))
        rows = self._rows(at) if tuning.overlap else ()
        weights = dense.learn(program, at, self._options)
        if not tuning.overlap:
            rows = self._rows(weights)
        program.wait((*rows, *weights))
        return program.step

    def _forward(self, copied: After) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the last stages of the pooled vectors, and of the bottom MLP if it overlaps."""
        w, program, tuning, level = self._w, self._program, self._tuning, self._d.kernels
        at, most = tuple(copied), int(w.lookups.sum(axis=1).max())
        if tuning.dedupe:
            at = program.kernels([("different keys", "irregular", [
                unique(most, values=rows_of_tables(w))])], at)
            if w.nodes > 1:
                # The GPU computes the sizes of messages, for which the host waits.
                at = program.wait(program.copy("sizes", INDEX * w.nodes, at, to_gpu=False))
        if not tuning.host_indices:
            at = self._indices(at, self._library)
        if w.nodes > 1:
            arrived = w.requested if tuning.dedupe else w.lookups
            at = program.kernels([("indices by table", "irregular", [
                by_table(int(arrived.sum(axis=0).max()), level)])], at)
        at = program.kernels([("gather", "embedding_lookup", lookups(
            w, self._d.gpu, tuning.fused, tuning.dedupe, tuning.joined))], at)
        bottom: tuple[int, ...] = ()
        if tuning.overlap and not tuning.nccl:  # MPI blocks the thread
            bottom = program.kernels([self._dense.bottom()], copied)
        at = program.exchange("vectors", "embedding_all_to_all", self._vectors.T, at,
                              self._library)
        if tuning.overlap and tuning.nccl:
            bottom = program.kernels([self._dense.bottom()], copied)
        if tuning.dedupe:
            at = program.kernels([("vectors to bags", "irregular", [
                in_shares(w, gather, "lookups", "bags")])], at)
        return at, bottom

    def _indices(self, after: After, library: str) -> tuple[int, ...]:
        """Exchange indices: of distinct keys with dedupe, else of all bags."""
        w = self._w
        return self._program.exchange(
            "indices", "input_all_to_all",
            INDEX * (w.requested if self._tuning.dedupe else w.lookups + w.bags), after, library,
            self._tuning.grouped)

    def _rows(self, after: After) -> tuple[int, ...]:
        """Exchange gradients of rows and apply them."""
        w, program, tuning = self._w, self._program, self._tuning
        at = tuple(after)
        if tuning.dedupe:
            at = program.kernels([("gradients of keys", "backward_all_to_all", [
                in_shares(w, segment_sum, "lookups", "requested")])], at)
        at = program.exchange("gradients", "backward_all_to_all", self._vectors, at,
                              self._library)
        return program.kernels([("row update", "backward_all_to_all", row_updates(
            w, self._d.gpu, tuning.fused or tuning.joined, tuning.dedupe))], at)

    def _copies(self, after: After) -> tuple[int, ...]:
        """Sum the gradients of copied tables over the nodes and apply them."""
        values = copied_values(self._w)
        if self._w.nodes == 1 or not values:
            return tuple(after)
        at = self._program.all_reduce("gradients of copies", 4 * values, after,
                                      self._tuning.nccl)
        return self._program.kernels([("update of copies", "all_reduce", [
            dense_update(values)])], at)
