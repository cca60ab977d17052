"""``bl-tuned``: a GPU baseline with every optimisation that software alone can make."""

from dataclasses import replace

import numpy as np

from host.devices.dense_work import cast, dense_update
from host.devices.embedding_work import gather, segment_sum, unique
from host.once import once
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.options import WIRES, StepOptions
from host.systems.program import After, Program
from host.systems.stage import Step
from host.systems.tables import (
    by_table,
    bytes_of,
    copied_values,
    in_shares,
    index_bytes,
    input_bytes,
    lookups,
    pooled,
    row_updates,
    rows_of_tables,
)
from host.systems.tuning import Tuning
from host.systems.workload import Workload

__all__ = ["bl_tuned", "exchanged"]


def bl_tuned(w: Workload, d: Devices, options: StepOptions, tuning: Tuning) -> Step:
    """Return a step of the tuned GPU baseline.

    Inputs are a single packed copy. If the software profile has CUDA graphs, all work between two
    waits of the host is one graph. A kernel splits the keys of hashed tables by owner. Hosts that
    exchange the keys split them while they form the inputs, which is charged to no system.

    w: mini-batch under a plan that replicates the tables copied by ``tuning``, see
    :meth:`host.placement.shard.ShardPlan.with_copies`.
    """
    return _Tuned(w, d, options, tuning).build()


def exchanged(w: Workload, tuning: Tuning) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of keys, and of vectors or their gradients, ``[requester, owner]``."""
    return _exchanged(w.once if tuning.bags_once else w, tuning.dedupe, tuning.key_bytes,
                      tuning.wire)


@once
def _exchanged(w: Workload, dedupe: bool, key_bytes: int,
               wire: str) -> tuple[np.ndarray, np.ndarray]:
    keys = key_bytes * w.requested if dedupe else index_bytes(w, key_bytes)
    return keys, bytes_of(w, "requested" if dedupe else "bags") * WIRES[wire] // WIRES["float32"]


class _Tuned:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, tuning: Tuning):
        d = tuning.devices(d)
        # Bags are looked up, and later copied to the bags of ``all``.
        self._w, self._all = w.once if tuning.bags_once else w, w
        self._d, self._tuning = d, tuning
        self._options = replace(options, buckets=tuning.buckets, nccl=tuning.exchange != "mpi")
        self._program, self._dense = Program(d), Dense(w, d.kernels)
        self._keys, self._vectors = exchanged(w, tuning)

    def build(self) -> Step:
        """Return the step."""
        program, dense, tuning, w = self._program, self._dense, self._tuning, self._w
        before: After = ()
        # Kernels that exchange data read the sizes from GPU memory. The keys of a hashed table at
        # each owner differ in number from mini-batch to mini-batch.
        if (w.varies or w.hashed) and not tuning.dedupe and tuning.exchange != "gpu":
            before = program.sizes(self._keys, before)
        before = self._indices(before, "host") if tuning.host_indices else before
        copied = program.copy("inputs", self._input_bytes(), before)
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

    def _input_bytes(self) -> float:
        """Return the bytes copied to the GPU: dense features, keys, and the indices of bags."""
        size = self._tuning.key_bytes
        found = input_bytes(self._w, self._tuning.host_indices, size)
        return found + size * int(self._all.whole.max()) * (self._w is not self._all)

    def _forward(self, copied: After) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the last stages of the pooled vectors, and of the bottom MLP if it overlaps."""
        w, program, tuning, level = self._w, self._program, self._tuning, self._d.kernels
        at, most = tuple(copied), int(w.lookups.sum(axis=1).max())
        if tuning.dedupe:
            at = program.kernels([("different keys", "irregular", [
                unique(most, values=rows_of_tables(w))])], at)
            if w.nodes > 1 and tuning.exchange != "gpu":
                # The GPU computes the sizes of messages, for which the hosts wait.
                at = program.wait(program.copy("sizes", tuning.key_bytes * w.nodes, at,
                                               to_gpu=False))
                at = program.sizes(self._keys, at)
        elif w.hashed and not tuning.host_indices:  # unique keys are sorted by owner
            at = program.kernels([("keys by owner", "irregular", [
                by_table(w, level, at_requester=True)])], at)
        if not tuning.host_indices:
            at = self._indices(at, tuning.exchange)
        if w.nodes > 1:
            at = program.kernels([("indices by table", "irregular", [
                by_table(w, level, tuning.dedupe)])], at)
        at = program.kernels([("gather", "embedding_lookup", lookups(
            w, self._d.gpu, tuning.fused, tuning.dedupe, tuning.joined))], at)
        bottom: tuple[int, ...] = ()
        if tuning.overlap and tuning.exchange == "mpi":  # MPI blocks the thread
            bottom = program.kernels([self._dense.bottom()], copied)
        at = self._exchange("vectors", "embedding_all_to_all", self._vectors.T, at)
        if tuning.overlap and tuning.exchange != "mpi":
            bottom = program.kernels([self._dense.bottom()], copied)
        return self._to_bags(at), bottom

    def _to_bags(self, at: tuple[int, ...]) -> tuple[int, ...]:
        """Pool the vectors of keys, or add partial vectors, and copy the vectors of equal bags."""
        w = self._w
        if self._tuning.dedupe:
            work = [("vectors to bags", "irregular", [
                in_shares(w, gather, "lookups", "whole", weights="weights")])]
        else:
            work = [("sums of partial vectors", "irregular", [each]) for each in pooled(w)]
        if w is not self._all:
            work.append(("vectors of equal bags", "irregular", [
                in_shares(self._all, gather, "whole", "whole")]))
        return self._program.kernels(work, at)

    def _indices(self, after: After, library: str) -> tuple[int, ...]:
        """Exchange indices: of distinct keys with dedupe, else of all bags."""
        return self._program.exchange("indices", "input_all_to_all", self._keys, after, library,
                                      self._tuning.grouped)

    def _exchange(self, name: str, phase: str, traffic: np.ndarray, at: After) -> tuple[int, ...]:
        """Exchange vectors, converted to the format between nodes and back."""
        if self._tuning.wire == "float32":
            return self._program.exchange(name, phase, traffic, at, self._tuning.exchange)
        values = traffic * 8 // WIRES[self._tuning.wire]
        np.fill_diagonal(values, 0)
        narrow = values.any()
        out, back = (int(values.sum(axis=axis).max()) for axis in (1, 0))
        if narrow:
            at = self._program.kernels([("to the format between nodes", phase, [
                cast(out, WIRES["float32"], WIRES[self._tuning.wire])])], at)
        at = self._program.exchange(name, phase, traffic, at, self._tuning.exchange)
        if narrow:
            at = self._program.kernels([("from the format between nodes", phase, [
                cast(back, WIRES[self._tuning.wire], WIRES["float32"])])], at)
        return tuple(at)

    def _rows(self, after: After) -> tuple[int, ...]:
        """Exchange gradients of rows and apply them."""
        w, program, tuning = self._w, self._program, self._tuning
        at, phase = tuple(after), "backward_all_to_all"
        if w is not self._all:
            at = program.kernels([("gradients of equal bags", phase, [
                in_shares(self._all, segment_sum, "whole", "distinct_bags")])], at)
        if tuning.dedupe:
            at = program.kernels([("gradients of keys", phase, [
                in_shares(w, segment_sum, "lookups", "requested")])], at)
        at = self._exchange("gradients", phase, self._vectors, at)
        return program.kernels([("row update", phase, row_updates(
            w, self._d.gpu, tuning.fused or tuning.joined, tuning.dedupe))], at)

    def _copies(self, after: After) -> tuple[int, ...]:
        """Sum the gradients of copied tables over the nodes and apply them."""
        values = copied_values(self._w)
        if self._w.nodes == 1 or not values:
            return tuple(after)
        at = self._program.all_reduce("gradients of copies", 4 * values, after,
                                      self._options.nccl)
        return self._program.kernels([("update of copies", "all_reduce", [
            dense_update(values)])], at)
