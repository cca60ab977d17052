"""Updates, by a node's GPU, of the rows of tables that pool at their owner."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from host.dlrm.dlrm import weighted_of
from host.dlrm.embedding import sums_in_order
from host.dlrm.float32 import means
from host.dlrm.formats import FLOAT32, VectorFormat
from host.dlrm.optimizer import Optimizer
from host.dlrm.weighted import sent_gradients
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS, Samples, segment_indices
from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread
from host.wire.bag_gradients import BagGradients
from host.wire.bags import NARROW_ROWS, BagList
from sim.node.errors import ProtocolError
from sim.node.events import EventQueue
from sim.node.gpu_memory import GpuMemory

__all__ = ["GpuUpdates"]


class GpuUpdates:
    """The kernel of a node's GPU that sums the gradients of bags, and updates their rows.

    A kernel runs per step. It begins when the NIC has told the number of bags of other nodes
    (END), all of them have arrived, and the gradients of the node's own bags are known. Each key
    of a bag has the gradient of the bag; a mean divides it by the number of keys. The keys of a
    weighted bag arrive one by one, multiplied by their weights. The sum of a row
    adds in the order of the global mini-batch, in float32
    (:func:`host.dlrm.embedding.sums_in_order`). Nodes have contiguous shares, so this is the order
    of node, sample and slot.

    The kernel reads the gradient of each key, and reads and writes each distinct row.

    Parameters
    ----------
    node: its number.
    memory: the node's tables.
    plan: plan of the tables.
    tables: numbers of the tables whose rows the GPU updates.
    optimizer: update rule.
    gpu, thread: profile and launch thread of the GPU.
    events: of the host.
    awake: function from the time at which a kernel would end to the time at which it ends; infinite
        for never.
    wire: format of the gradients of other nodes. The gradients of own bags are rounded in the same
        way.

    Members: ``mine``, whether GPUs update each table, bool ``[tables]``; ``bags``, bags with
    gradients of other nodes, ``keys`` updated, ``launches``.
    """

    def __init__(self, node: int, memory: GpuMemory, plan: ShardPlan, tables: Sequence[int],
                 optimizer: Optimizer, gpu: GpuProfile, thread: LaunchThread | None,
                 events: EventQueue, awake: Callable[[float], float],
                 wire: VectorFormat = FLOAT32):
        self._node, self._memory, self._plan, self._optimizer = node, memory, plan, optimizer
        self._wire = wire
        self.mine = np.isin(np.arange(len(plan.tables)), tables)
        self._own = plan.own_pooled(node) & self.mine
        self._weighted = weighted_of(memory.store.model)
        self._events, self._awake = events, awake
        self._kernels: GpuLookups[int] = GpuLookups(gpu, 4 * memory.store.model.width, thread)
        if thread:
            thread.join(lambda now: self._schedule(self._kernels.start(now)))
        self._parts: list[BagGradients] = []
        self._begun, self._expected = False, None
        # Rows that the kernel updates, and the sums of their gradients.
        self._sums: tuple[np.ndarray, np.ndarray] | None = None
        self._step = -1
        self.bags = self.keys = 0

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return self._kernels.launches

    @property
    def unfinished(self) -> bool:
        """Whether gradients wait for their kernel."""
        return bool(self._parts) or self._begun or self._expected is not None

    def takes(self, tables: np.ndarray) -> np.ndarray:
        """Return whether the rows of each of ``tables`` are updated by GPUs: bool."""
        return self.mine[tables]

    def share(self, samples: Samples, gradients: np.ndarray, step: int,
              ) -> tuple[Samples, np.ndarray, BagGradients]:
        """Keep the gradients ``[n, tables, d]`` of the node's own bags in its share of ``step``;
        return the samples and the gradients for the NIC's reduction, and the bags for other GPUs,
        whose gradients are in the format of the wire.
        """
        self._step = step
        own, others = (self._of(samples, gradients, tables)
                       for tables in (self._own, self.mine & ~self._own))
        self._parts.append(replace(own, vectors=self._wire.rounded(own.vectors, own.bags.tables)))
        return samples.of_tables(~self.mine), gradients[:, ~self.mine], replace(
            others, vectors=self._wire.packed(others.vectors, others.bags.tables))

    def _of(self, samples: Samples, gradients: np.ndarray, tables: np.ndarray) -> BagGradients:
        """Return the bags of ``samples`` in ``tables``, except empty bags, with their gradients."""
        held = samples.of_tables(tables)
        bags, lengths, vectors = sent_gradients(held, gradients[:, tables],
                                                self._weighted[tables])
        full = lengths > 0
        landings, place = np.divmod(bags[full], max(1, int(tables.sum())))
        numbers = np.flatnonzero(tables)[place]
        return BagGradients(
            BagList(numbers, lengths[full], held.rows.astype(np.int64), landings,
                    self._plan.owner_pooled[numbers] > NARROW_ROWS),
            np.full(int(full.sum()), self._node), vectors[full])

    def begin(self, now: float) -> None:
        """Begin: the gradients of own bags are in GPU memory."""
        self._begun = True
        self._launch(now)

    def take(self, gradients: BagGradients, now: float) -> None:
        """Take bags with gradients of other nodes, in the format of the wire."""
        held = np.append(self._own, False)[np.minimum(gradients.bags.tables, len(self._own))]
        if not held.all():
            table = gradients.bags.tables[int(held.argmin())]
            raise ProtocolError(f"node {self._node} sent its host a gradient of table {table}, "
                                f"whose rows its GPU does not update")
        self.bags += len(gradients)
        self._parts.append(replace(gradients, vectors=self._wire.unpacked(
            gradients.vectors, gradients.bags.tables)))
        self._launch(now)

    def end(self, count: int, now: float) -> None:
        """Take the number of bags with gradients of other nodes in the step."""
        if self._expected is not None:
            raise ProtocolError(f"node {self._node} ended the bags of a step twice")
        self._expected = count
        self._launch(now)

    def _launch(self, now: float) -> None:
        """Launch the kernel when nothing is missing."""
        came = sum(int((part.sources != self._node).sum()) for part in self._parts)
        if self._expected is not None and came > self._expected:
            raise ProtocolError(f"node {self._node} sent {came} bags with gradients, and reported "
                                f"{self._expected}")
        if not self._begun or came != self._expected:
            return
        if not any(map(len, self._parts)):
            self._finish(now)
            return
        keys, gradients = self._in_order()
        self._sums = sums_in_order(keys, gradients)
        self.keys += len(keys)
        self._schedule(self._kernels.arrive(now, self._step, len(keys) + 2 * len(self._sums[0])))

    def _schedule(self, gather: Gather[int] | None) -> None:
        if gather is not None and (end := self._awake(gather.end)) < inf:
            self._events.at(end, self._end_kernel)

    def _end_kernel(self, now: float) -> None:
        self._finish(now)
        self._schedule(self._kernels.finish(now))

    def _finish(self, now: float) -> None:
        """Write the rows of the step, and tell the NIC."""
        distinct = np.empty(0, np.int64)
        if self._sums is not None:
            store, (distinct, sums) = self._memory.store, self._sums
            store.write(distinct, *self._optimizer.apply(*store.read(distinct), sums))
        self._memory.updated(distinct, self._step, now)
        self._parts, self._begun, self._expected, self._sums = [], False, None, None

    def _in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return each key of the step's bags in the order of the global mini-batch, and its
        gradient: int64 ``[k]``, float32 ``[k, dimension]``."""
        parts = [part for part in self._parts if len(part)]
        sources, samples, tables, lengths, rows, vectors = (
            np.concatenate([value(part) for part in parts]) for value in (
                lambda part: part.sources, lambda part: part.bags.landings,
                lambda part: part.bags.tables, lambda part: part.bags.lengths,
                lambda part: part.bags.rows, lambda part: part.vectors))
        if self._memory.store.model.nic_pooling == "mean":
            vectors = means(vectors, lengths)
        order = np.lexsort((tables, samples, sources))
        each = lengths[order]
        at = segment_indices((np.cumsum(lengths) - lengths)[order], each)
        return (np.repeat(tables[order], each) << KEY_ROW_BITS | rows[at],
                np.repeat(vectors[order], each, axis=0))
