"""``bl-tuned``: a GPU baseline with every optimisation that software alone can make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

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
    input_bytes,
    lookups,
    row_updates,
    vector_bytes,
)
from host.systems.workload import Workload
from rtl.formats import DescriptorKind

__all__ = ["COPIED_ROWS", "Tuning", "best_tuning", "bl_tuned"]

COPIED_ROWS = (0, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Tables of at most so many rows may be copied to every node; 0 for none."""


@dataclass(frozen=True)
class Tuning:
    """Optional optimisations of a baseline.

    Members
    -------
    fused: one operator looks up, and one updates, all tables of a node.
    nccl: GPUs exchange data between their memories; otherwise MPI does, through host memory.
    dedupe: a requester asks for each key once, and sends one gradient for it. The host has to wait
        for the number of keys, which ends a graph.
    overlap: the bottom MLP and the sum of the MLPs' gradients overlap the exchange of vectors.
    buckets: gradients of the top MLP are summed over the nodes while those of the bottom MLP are
        computed, in a collective of their own.
    copied_rows: every node has a copy of each table of at most so many rows; in training their
        gradients are summed over the nodes, like those of the MLPs.
    """

    fused: bool = True
    nccl: bool = True
    dedupe: bool = True
    overlap: bool = True
    buckets: bool = False
    copied_rows: int = 10_000

    def neighbours(self) -> Iterator["Tuning"]:
        """Yield every tuning that differs in one member."""
        for field in fields(self):
            for value in COPIED_ROWS if field.name == "copied_rows" else (False, True):
                if value != getattr(self, field.name):
                    yield replace(self, **{field.name: value})


_STARTS = (Tuning(), Tuning(False, False, False, False, False, 0), Tuning(dedupe=False),
           Tuning(nccl=False))
"""Everything on, everything off, and on but for what costs a wait or multiprocessors: with many
mini-batches in flight the way from everything on to either ends before it."""


def best_tuning(cost: Callable[[Tuning], float], starts: Sequence[Tuning] = _STARTS) -> Tuning:
    """Return the tuning of the least ``cost``, from which no change of one member leads to less.

    The search begins at each of ``starts`` and follows the best change.
    """
    costs: dict[Tuning, float] = {}

    def of(tuning: Tuning) -> float:
        if tuning not in costs:
            costs[tuning] = cost(tuning)
        return costs[tuning]

    found = []
    for start in starts:
        at = start
        while of(better := min(at.neighbours(), key=of)) < of(at):
            at = better
        found.append(at)
    return min(found, key=of)


def bl_tuned(w: Workload, d: Devices, options: StepOptions, tuning: Tuning) -> Step:
    """Return a step of the tuned GPU baseline.

    ``w``: the mini-batch under the plan in which the tables that ``tuning`` copies are replicated,
    see :meth:`host.placement.shard.ShardPlan.with_copies`. Inputs are one packed copy. Between two
    waits of the host there is one graph, where the software profile has graphs.
    """
    return _Tuned(w, d, options, tuning).build()


class _Tuned:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, tuning: Tuning):
        self._w, self._d, self._options, self._tuning = w, d, options, tuning
        self._program, self._dense = Program(d), Dense(w, d.kernels)
        self._library = "nccl" if tuning.nccl else "mpi"
        self._vectors = vector_bytes(w) * (w.requested if tuning.dedupe else w.bags)

    def build(self) -> Step:
        """Return the step."""
        program, dense, tuning = self._program, self._dense, self._tuning
        copied = program.copy("inputs", input_bytes(self._w, False), ())
        vectors, bottom = self._forward(copied)
        if not tuning.overlap:
            bottom = program.kernels([dense.bottom()], vectors)
        at = program.kernels(dense.top(), (*vectors, *bottom))
        if not self._options.training:
            dense.predictions(program, at)
            return program.step
        at = self._copies(program.kernels(dense.backward(), at))
        rows = self._rows(at) if tuning.overlap else ()
        weights = dense.learn(program, at, self._options, tuning.buckets)
        if not tuning.overlap:
            rows = self._rows(weights)
        program.wait((*rows, *weights))
        return program.step

    def _forward(self, copied: After) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the last stages of the pooled vectors, and of the bottom MLP if it overlaps."""
        w, program, tuning, level = self._w, self._program, self._tuning, self._d.kernels
        at, most = tuple(copied), int(w.lookups.sum(axis=1).max())
        if tuning.dedupe:
            at = program.kernels([("different keys", "irregular", [unique(most)])], at)
            if w.nodes > 1:
                # The host learns the sizes of messages only after the GPU has found them.
                at = program.wait(program.copy("sizes", INDEX * w.nodes, at, to_gpu=False))
        indices = INDEX * (w.requested if tuning.dedupe else w.lookups + w.bags)
        at = program.exchange("indices", "input_all_to_all", indices, at, self._library)
        if w.nodes > 1:
            arrived = w.requested if tuning.dedupe else w.lookups
            at = program.kernels([("indices by table", "irregular", [
                by_table(int(arrived.sum(axis=0).max()), level)])], at)
        at = program.kernels([("gather", "embedding_lookup", lookups(
            w, self._d.gpu, tuning.fused, tuning.dedupe))], at)
        bottom: tuple[int, ...] = ()
        if tuning.overlap and not tuning.nccl:  # MPI keeps the thread from calling anything else
            bottom = program.kernels([self._dense.bottom()], copied)
        at = program.exchange("vectors", "embedding_all_to_all", self._vectors.T, at,
                              self._library)
        if tuning.overlap and tuning.nccl:
            bottom = program.kernels([self._dense.bottom()], copied)
        if tuning.dedupe:
            at = program.kernels([("vectors to bags", "irregular", [
                gather(most, int(w.bags.sum(axis=1).max()), w.model.dimension, 1)])], at)
        return at, bottom

    def _rows(self, after: After) -> tuple[int, ...]:
        """Exchange gradients of rows and apply them."""
        w, program, tuning = self._w, self._program, self._tuning
        at = tuple(after)
        if tuning.dedupe:
            rows, keys = int(w.lookups.sum(axis=1).max()), int(w.requested.sum(axis=1).max())
            at = program.kernels([("gradients of keys", "backward_all_to_all", [
                segment_sum(rows, keys, w.model.dimension)])], at)
        at = program.exchange("gradients", "backward_all_to_all", self._vectors, at,
                              self._library)
        return program.kernels([("row update", "backward_all_to_all", row_updates(
            w, self._d.gpu, tuning.fused, tuning.dedupe))], at)

    def _copies(self, after: After) -> tuple[int, ...]:
        """Sum the gradients of copied tables over the nodes and apply them."""
        w, rows = self._w, _copied_rows(self._w)
        if w.nodes == 1 or not rows:
            return tuple(after)
        at = self._program.all_reduce("gradients of copies", vector_bytes(w) * rows, after)
        return self._program.kernels([("update of copies", "all_reduce", [
            dense_update(rows * w.model.dimension)])], at)


def _copied_rows(w: Workload) -> int:
    """Return the rows of the tables that every node has a copy of."""
    return sum(table.rows for table in w.plan.tables if table.kind == DescriptorKind.REPLICATED)
