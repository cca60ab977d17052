"""A node: one SmartNIC with its host and GPU.

NIC and host take turns. The NIC runs up to the earliest cycle in which the host can affect it. Then
the host handles the packets of the NIC, event by event in time order. A reply reaches the NIC at
least a PCIe round trip after its cause; rows additionally take a gather on the GPU.
"""

from collections.abc import Sequence
from functools import partial
from math import ceil, inf
from time import thread_time

import numpy as np

from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread, MemoryClock
from host.timing.pcie import Pcie, PcieProfile
from host.timing.row_reads import RowReadTimes
from host.wire.bag_gradients import BagGradients
from host.wire.bags import ReadRows
from host.wire.packets import Header, payload_records
from host.wire.rows import Answer
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, Opcode
from sim.engines import Engine
from sim.job.faults import Windows
from sim.nic.ports import LAST_BIT
from sim.nic.registers import address_of
from sim.nic.timed import TIMED
from sim.node.answers import Answers
from sim.node.bags import Bags
from sim.node.completions import Completions
from sim.node.delivery import Delivery
from sim.node.dense_vectors import DenseVectors
from sim.node.errors import COUNT, OPCODE, ProtocolError
from sim.node.events import EventQueue, Rank
from sim.node.gpu_rings import GpuRings
from sim.node.gradients import TrainingOf
from sim.node.host_port import HostPort
from sim.node.queries import Queries
from sim.node.resident_kernel import ResidentKernel
from sim.node.row_reads import RowReads
from sim.node.step import Step, lacking

__all__ = ["Node"]


def _no_time() -> float:
    return 0.0


class Node:
    """One NIC with its host.

    Parameters
    ----------
    number: the node's number.
    engine: the running NIC.
    config: its configuration.
    answer: serves the rows in GPU memory.
    dimension: float32 values of a vector.
    pcie, gpu: profiles of the timing models.
    in_flight: steps that this host keeps in flight.
    bottom: float32 operations of a sample's bottom MLP, if the NIC computes the interaction.
    training: function that makes the `TrainingHost`, if the NIC trains.
    delivery: delivery of the NIC's answers and of its requests for rows; in its format, a vector
        has fewer lanes than values.
    read: function that returns the rows in GPU memory, if tables pool at their owner.
    """

    def __init__(self, number: int, engine: Engine, config: NicConfig, answer: Answer,
                 dimension: int, pcie: PcieProfile, gpu: GpuProfile, in_flight: int,
                 bottom: int | None = None, training: TrainingOf | None = None,
                 delivery: Delivery | None = None, read: ReadRows | None = None):
        self.number = number
        self.engine = engine
        self._config, self._answer = config, answer
        self._pcie = Pcie(pcie)
        self._events = EventQueue()
        thread, memory = LaunchThread(gpu, self._events.at), MemoryClock()
        self._gpu: GpuLookups[tuple[int, np.ndarray]] = GpuLookups(gpu, 4 * dimension, thread,
                                                                   memory)
        thread.join(lambda now: self._schedule_end(self._gpu.start(now)))
        delivery = delivery or Delivery()
        lanes = delivery.wire.lanes_for(dimension)
        self._rings = None if not delivery.gpu_rings else GpuRings(
            number, config, lanes, ResidentKernel(
                gpu, 4 * dimension, self._events, lambda end: self.silent_gpu.after(end),
                self._store), answer)
        self._row_reads = None if delivery.rows is None else RowReads(
            number, config, delivery.rows,
            RowReadTimes(pcie, self._pcie, delivery.rows.row_bytes), self._gpu, self._events,
            lambda end: self.silent_gpu.after(end), answer, self._send)
        self.bags = None if delivery.plan is None or read is None else Bags(
            number, config, delivery.plan, dimension, delivery.own_pooling, read, gpu, thread,
            memory, self._events, self._send, lambda end: self.silent_gpu.after(end),
            self._end_pooled, delivery.own_timed,
            None if training is None else self._take_gradients, delivery.wire,
            delivery.gradient_wire)
        """The pooler of bags of owner-pooled tables, None without these tables."""
        self._completions = (Completions(number, delivery.completion_slots)
                             if delivery.completion_slots else None)
        self._queries = Queries(
            number, config, in_flight, self._send, self._begin_step,
            *(() if self._completions is None else (self._completions.reserve,)))
        self._to_nic: list[np.ndarray] = []
        self._silenced: list[float] = []
        self._to_nic_starts: list[float] = []
        self._port = HostPort(engine, number, self._pcie.to_nic.cycles_per_byte, self._pcie.latency)
        self._answers = Answers(number, lanes if delivery.pooling else dimension,
                                interaction=bottom is not None, refused=self._take_refusals,
                                pooling=delivery.pooling, completions=self._completions,
                                wire=delivery.wire)
        self.errors = self._answers.errors
        """Sample and status of each refusal."""
        self.dense = None if bottom is None else DenseVectors(
            number, gpu, bottom, config.host_payload_beats, self._events,
            find=self._answers.find, send=self._send, awake=lambda end: self.silent_gpu.after(end))
        """The sender of dense vectors, None unless the NIC computes the interaction."""
        self.training = training and training(
            self._events, self._send, lambda end: self.silent_gpu.after(end), thread)
        self.silent_host = self.silent_gpu = Windows()
        """Times in which the host sends nothing, and in which no gather completes."""
        self._moved = 0.0
        self.actions = 0
        """Actions performed; the watchdog reports a hang if the sum stops growing."""
        self.seconds = {"nics": 0.0, "hosts": 0.0}
        """CPU time of NIC and host, extrapolated from a sample of quanta."""
        self._quanta = 0
        self.host_bytes = {"to_nic": 0, "from_nic": 0}
        self.finished: list[Step] = []
        """Steps whose share at this node is fully answered, in time order."""
        engine.set_rate("host_tx", cycles_per_beat=BEAT_BYTES * self._pcie.from_nic.cycles_per_byte,
                        last_bit=LAST_BIT, burst=64)

    @property
    def next_events(self) -> tuple[float, float]:
        """The next cycles at which the NIC and the host act without new input."""
        nic, host = self.engine.next_event, self._events.next_time
        return inf if nic is None else nic, inf if host is None else host

    def _horizon(self) -> float:
        """Return the lookahead: the cycle before which no packet of the host reaches the NIC.

        A host replies at once to a credit for which queries wait, to requests for dense vectors, to
        flushes, to reads of a ring or of rows, and to training reports. It replies to requests for
        rows by key only after a gather on the GPU. The lookahead includes the host's pending events
        and, with the NIC's events, its pending register writes.
        """
        nic, host = self.next_events
        answer = nic + self._pcie.lookahead
        if not (self._queries.left or self.dense or self._completions or self._rings
                or self._row_reads or (self.training and self.training.busy)):
            answer += self._gpu.lookahead
        return min(answer, host + self._pcie.latency)

    @property
    def quiet(self) -> bool:
        """Whether NIC and host stay idle until something arrives from outside."""
        return (not self._events and not self.engine.waiting("host_rx")
                and not self.engine.waiting("net_rx") and not self._storing
                and self.engine.at_rest)

    @property
    def _storing(self) -> bool:
        """Whether counts of the rings are on their way to the NIC."""
        return self._rings is not None and self.engine.registers_pending > 0

    @property
    def gpu(self) -> GpuLookups:
        """The GPU's gathers, for its counts."""
        return self._gpu if self._rings is None else self._rings.gathers

    @property
    def unanswered(self) -> int:
        """Unanswered samples of this node's shares, in flight or waiting."""
        shares = ((step, step.unanswered(self.number)) for step in self._answers.steps.values())
        return sum(left or (self.bags is not None and self.bags.waits(step))
                   * (step.shares[self.number + 1] - step.shares[self.number])
                   for step, left in shares)

    @property
    def progress(self) -> float:
        """Time of the last progress of a result; see :class:`sim.node.protocol.ClusterNode`."""
        placed = self._answers.placed + self._pcie.latency if self._answers.placed >= 0 else 0.0
        trained = 0.0 if self.training is None else self.training.progress
        return max(self._moved, float(placed), trained)

    @property
    def lacking(self) -> Sequence[int]:
        """Numbers of the samples in flight, or waiting, that lack their answers."""
        return lacking(self._answers.steps.values(), self.number)

    @property
    def packets_unsent(self) -> int:
        """Packets for the NIC that a silent host has not sent yet."""
        return sum(leaves > self.engine.cycle for leaves in self._silenced)

    @property
    def queries_waiting(self) -> int:
        """Query packets held back for lack of credit."""
        return self._queries.waiting

    @property
    def pcie(self) -> Pcie:
        """The PCIe connection, for its counts."""
        return self._pcie

    def submit(self, step: Step, time: float) -> None:
        """Queue this host's share of ``step``, to start in its turn, not before ``time``."""
        if not step.left[self.number]:
            return
        self._answers.open(step)
        self._moved = max(self._moved, time)
        self._events.at(time, lambda now: self._queries.add(step, now), Rank.HANDED_OUT)

    def advance(self, end: int) -> None:
        """Run NIC and host up to cycle ``end``."""
        self._quanta += 1
        clock = _no_time if self._quanta % TIMED else thread_time
        cycle = -1
        while cycle < end:
            cycle = int(min(end, self._horizon()))
            began = clock()
            self.engine.run(cycle)
            ran = clock()
            self.host_quantum(cycle)
            self.seconds["nics"] += (ran - began) * TIMED
            self.seconds["hosts"] += (clock() - ran) * TIMED

    def host_quantum(self, end: int) -> None:
        """Let the host handle the packets of the NIC, which is at cycle ``end``."""
        self._receive()
        horizon = end + self._pcie.latency
        for time, action in self._events.until(horizon):
            self.actions += 1
            action(time)
        self._push_sent()

    def _receive(self) -> None:
        packets = self._port.take()
        if not packets.starts:
            return
        beats, starts, ends, cycles = packets
        self.host_bytes["from_nic"] += ends[-1] * BEAT_BYTES
        # The host acts on a packet only after the packet has crossed PCIe.
        for at, head, completed in self._answers.take(packets):
            self._events.at(float(cycles[at]) + self._pcie.latency, partial(
                self._take_packet, beats[starts[at]:ends[at]], head, completed), Rank.PACKET)

    def _take_packet(self, packet: np.ndarray, head: Header, completed: Sequence[Step],
                now: float) -> None:
        if self._queries.consumed(head.credit):
            self._moved = max(self._moved, now)
        trains = self.training is not None and self.training.packet(packet, head, now)
        if self._rings is not None and head.opcode in self._rings.opcodes:
            data = self._rings.take(packet, head, now)
            if data is not None:
                self._send(data, now)
        elif self._row_reads is not None and head.opcode == self._row_reads.opcode:
            self.host_bytes["from_nic"] += self._row_reads.times.asked(head.count, packet.nbytes)
            self._row_reads.take(packet, head, now)
        elif head.opcode == Opcode.LOOKUP_REQUESTS and self._row_reads is None:
            records = payload_records(packet[1:], head.count)
            if len(records) != head.count:
                raise self._violation(COUNT, head)
            self._schedule_end(self._gpu.arrive(now, (head.step, records), head.count))
        elif self.bags is not None and head.opcode == self.bags.opcode:
            self.bags.take(packet, head, now)
        elif head.opcode == Opcode.DENSE_REQUESTS and self.dense is not None:
            self.dense.take_requests(packet, head, now)
        elif head.opcode == Opcode.FLUSH and self._completions is not None:
            self._send(self._completions.flushed(packet, head), now)
        elif not (trains or head.opcode in self._answers.answering
                  or head.opcode == Opcode.CREDIT):
            raise self._violation(OPCODE, head)
        for step in completed:
            if self.bags is None or self.bags.answered(step):
                self._end_step(step, now)
        self._queries.send(now)

    def _violation(self, what: str, head: Header) -> ProtocolError:
        return ProtocolError(f"node {self.number} {what.format(head.opcode)}")

    # Rows for the NIC

    def _schedule_end(self, gather: Gather | None) -> None:
        if gather is not None and (end := self.silent_gpu.after(gather.end)) < inf:
            self._events.at(end, lambda now: self._finish_gather(gather, now))

    def _finish_gather(self, gather: Gather, now: float) -> None:
        for step, records in gather.lists:
            for packet in self._answer(records, step):
                self._send(packet, now)
        self._schedule_end(self._gpu.finish(now))

    def _send(self, packet: np.ndarray, now: float, more: int = 0) -> None:
        """Send a packet to the NIC at ``now``, or as soon as the link is free. ``more`` bytes
        occupy the link before it."""
        ready, now = now, self.silent_host.after(now)
        if now > ready:
            self._silenced.append(now)
        if now == inf:
            return
        link = self._pcie.to_nic
        self.host_bytes["to_nic"] += packet.nbytes + more
        self._to_nic.append(packet)
        self._to_nic_starts.append(
            link.send(now, packet.nbytes + more)[0] + more * link.cycles_per_byte)

    def _store(self, register: str, count: int, now: float) -> None:
        """Store a count of a ring, modulo 2^16, to a register of the NIC at ``now``."""
        if (now := self.silent_host.after(now)) < inf:
            self.engine.write(address_of(self._config, register), count & 0xFFFF,
                              ceil(now + self._pcie.latency))

    def _push_sent(self) -> None:
        """Pass all packets sent in this quantum to the engine in one call."""
        if not self._to_nic:
            return
        self._port.give(self._to_nic, self._to_nic_starts, self.engine.cycle)
        self._to_nic, self._to_nic_starts = [], []

    # Steps

    def _take_refusals(self, samples: np.ndarray, steps: np.ndarray, statuses: np.ndarray) -> None:
        if self.training is not None:
            self.training.errors(samples, steps, statuses)

    def _take_gradients(self, gradients: BagGradients, step: int, now: float) -> None:
        assert self.training is not None
        self.training.take_bags(gradients, step, now)

    def _begin_step(self, step: Step, now: float) -> None:
        if self._completions is not None and step.sends(self.number):
            self._send(self._completions.open(step), now)
        if self.bags is not None:
            self.bags.begin(step, now)
        if self.dense is not None:
            self.dense.begin(step, now)

    def _end_pooled(self, step: Step, now: float) -> None:
        """End an answered share when its own bags are pooled."""
        self._moved = max(self._moved, now)
        self._end_step(step, now)

    def _end_step(self, step: Step, now: float) -> None:
        step.expand(self.number)
        step.ends[self.number] = now
        self._answers.close(step)
        if self._completions is not None and step.sends(self.number):
            self._completions.seen(step)
        if self.dense is not None:
            self.dense.end(step)
        self.finished.append(step)
        self._queries.ended(now)
