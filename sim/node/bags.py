"""Bags that a node's GPU pools: bags of other nodes, and bags of the node's own samples."""

from collections.abc import Callable
from math import inf

import numpy as np

from host.dlrm.float32 import means
from host.dlrm.formats import FLOAT32, VectorFormat
from host.placement.shard import ShardPlan
from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread, MemoryClock
from host.wire.bag_gradients import BagGradients, split_lists
from host.wire.bags import BagList, ReadRows, bag_vectors, parse_bags, pooled_bags
from host.wire.packets import Header, payload_records
from rtl.config import NicConfig
from rtl.formats import Opcode
from sim.node.errors import COUNT, ProtocolError
from sim.node.events import EventQueue
from sim.node.step import Step

__all__ = ["Bags"]


class Bags:
    """The kernels of a node's GPU that pool bags of owner-pooled tables.

    All lists of other nodes' bags that wait when the GPU is free share a kernel. The node's own
    bags of a step are pooled by another kernel, which begins with the step's first query: the NIC
    never sees them. Both kernels share the launch thread and the memory with the gathers of rows.

    Parameters
    ----------
    node: its number.
    config: of its NIC.
    plan: plan of the tables.
    dimension: float32 values of a vector.
    pooling: ``sum`` or ``mean``, as NICs pool; the means of the plan are divided in any case.
    read: function that returns the rows in GPU memory.
    gpu, thread, memory: profile, launch thread and memory of the GPU.
    events: of the host.
    send: function that sends a packet at a given time.
    awake: function from the time at which a kernel would end to the time at which it ends; infinite
        for never.
    ended: callback, called when the share of a step is answered and its own bags are pooled.
    own_timed: whether the kernel of the own bags takes time; otherwise they are pooled at once and
        do not count, unless a node has no queries.
    gradients: function that takes the bags with gradients of a list, with its step, at a given
        time; None without training.
    wire: format of the vectors of other nodes. Own bags are rounded in the same way.
    gradient_wire: format of the gradients of other nodes.

    Members: ``foreign``, ``own``: bags pooled; ``keys`` of both; ``lists`` of other nodes' bags.
    """

    opcode = Opcode.BAG_LISTS

    def __init__(self, node: int, config: NicConfig, plan: ShardPlan, dimension: int, pooling: str,
                 read: ReadRows, gpu: GpuProfile, thread: LaunchThread, memory: MemoryClock,
                 events: EventQueue, send: Callable[[np.ndarray, float], None],
                 awake: Callable[[float], float], ended: Callable[[Step, float], None],
                 own_timed: bool = True,
                 gradients: Callable[[BagGradients, int, float], None] | None = None,
                 wire: VectorFormat = FLOAT32, gradient_wire: VectorFormat = FLOAT32):
        self._node, self._config, self._plan = node, config, plan
        self._own_timed, self._gradients = own_timed, gradients
        self._gradient_lanes = gradient_wire.lanes_for(dimension)
        self._pooling, self._read, self._wire = pooling, read, wire
        self._rows, self._weighted, self._beats = plan.owner_pooled, plan.weighted, plan.beats
        self._held = plan.own_pooled(node) & (plan.owner_pooled > 0)
        self._events, self._send, self._awake, self._ended = events, send, awake, ended
        self._lists: GpuLookups[tuple[BagList, int]] = GpuLookups(gpu, 4 * dimension, thread,
                                                                  memory)
        self._steps: GpuLookups[tuple[Step, BagList]] = GpuLookups(gpu, 4 * dimension, thread,
                                                                   memory)
        thread.join(lambda now: self._list_kernel(self._lists.start(now)))
        thread.join(lambda now: self._step_kernel(self._steps.start(now)))
        self._pooling_of: set[int] = set()
        self._answered: set[int] = set()
        self.foreign = self.own = self.keys = self.lists = 0

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return self._lists.launches + self._steps.launches

    def waits(self, step: Step) -> bool:
        """Return whether own bags of ``step`` are not pooled yet."""
        return step.number in self._pooling_of

    # Bags of other nodes

    def take(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take a list of bags that has crossed PCIe at ``now``.

        :class:`ProtocolError` for a list that violates the protocol.
        """
        words = payload_records(packet[1:], head.count)
        if not head.count or len(words) != head.count or len(packet) - 1 > -(-head.count // 8):
            raise self._wrong(COUNT.format(head.opcode))
        with_gradients: BagGradients | None = None
        try:
            if self._gradients is not None:
                words, with_gradients = split_lists(words, self._gradient_lanes)
            bags = parse_bags(words)
        except ValueError as error:
            raise self._wrong(f"sent its host a list of bags: {error}") from None
        if self._gradients is not None and with_gradients is not None and len(with_gradients):
            self._gradients(with_gradients, head.step, now)
            if not len(bags):
                return
        self._check(bags)
        self.lists += 1
        self.foreign += len(bags)
        self.keys += len(bags.rows)
        self._list_kernel(self._lists.arrive(now, (bags, head.step), len(bags.rows), len(bags),
                                             bags.weight_count))

    def _check(self, bags: BagList) -> None:
        """Raise :class:`ProtocolError` unless this node pools ``bags``."""
        unknown = bags.tables >= len(self._held)
        held = self._held[np.where(unknown, 0, bags.tables)] & ~unknown
        if not held.all():
            raise self._wrong(f"sent its host a bag of table {bags.tables[held.argmin()]}, whose "
                              f"bags it does not pool")
        heavy, wanted = bags.with_weights, self._weighted[bags.tables]
        if (heavy != wanted).any():
            at = int((heavy != wanted).argmax())
            raise self._wrong(f"sent its host a bag of table {bags.tables[at]} "
                              f"{'with' if heavy[at] else 'without'} weights")
        beyond = bags.rows >= self._rows[bags.key_tables]
        if beyond.any():
            at = int(beyond.argmax())
            raise self._wrong(f"requested row {bags.rows[at]} of table {bags.key_tables[at]}, "
                              f"which the table does not have")
        if int(bags.landings.max()) >= self._config.owner_bags:
            raise self._wrong(f"sent its host a bag with place {bags.landings.max()} of "
                              f"{self._config.owner_bags}")

    def _list_kernel(self, gather: Gather[tuple[BagList, int]] | None) -> None:
        if gather is not None and (end := self._awake(gather.end)) < inf:
            self._events.at(end, lambda now: self._end_lists(gather, now))

    def _end_lists(self, gather: Gather[tuple[BagList, int]], now: float) -> None:
        for bags, step in gather.lists:
            for packet in bag_vectors(bags, self._read, self._beats, node=self._node, step=step,
                                      payload_beats=self._config.host_payload_beats,
                                      wire=self._wire):
                self._send(packet, now)
        self._list_kernel(self._lists.finish(now))

    # Bags of the node's own samples

    def begin(self, step: Step, now: float) -> None:
        """Pool the node's own bags of ``step``, whose share begins at ``now``."""
        bags = step.own_bags(self._node)
        if step.sends(self._node) and not (len(bags) and self._own_timed):
            step.place_own(self._node, self._pooled(bags))
            return
        self._pooling_of.add(step.number)
        self.own += len(bags)
        self.keys += len(bags.rows)
        self._step_kernel(self._steps.arrive(now, (step, bags), len(bags.rows), len(bags),
                                             bags.weight_count))

    def answered(self, step: Step) -> bool:
        """Record that the NIC has answered the share of ``step``; return whether it has ended."""
        if self.waits(step):
            self._answered.add(step.number)
            return False
        return True

    def _step_kernel(self, gather: Gather[tuple[Step, BagList]] | None) -> None:
        if gather is not None and (end := self._awake(gather.end)) < inf:
            self._events.at(end, lambda now: self._end_steps(gather, now))

    def _end_steps(self, gather: Gather[tuple[Step, BagList]], now: float) -> None:
        for step, bags in gather.lists:
            vectors = self._pooled(bags)
            mean = self._plan.means[bags.tables]
            vectors[mean] = means(vectors[mean], bags.lengths[mean])
            step.place_own(self._node, vectors)
            self._pooling_of.remove(step.number)
            if step.number in self._answered or not step.sends(self._node):
                self._answered.discard(step.number)
                self._ended(step, now)
        self._step_kernel(self._steps.finish(now))

    def _pooled(self, bags: BagList) -> np.ndarray:
        """Return the pooled vectors of own ``bags``: float32 ``[n, dimension]``."""
        return pooled_bags(bags, self._read, self._pooling, self._wire,
                           self._rows[bags.tables] > 0)

    def _wrong(self, what: str) -> ProtocolError:
        return ProtocolError(f"node {self._node} {what}")
