"""Node: one SmartNIC and the host and GPU beside it.

The host answers what its NIC sent in a quantum as soon as the quantum is over, event by event in
time order. An answer is at the NIC no earlier than PCIe's round trip after what caused it, so a
quantum of at most that length never ends behind an answer's arrival.
"""

from collections import deque
from collections.abc import Callable

import numpy as np

from host.gpu import Gather, GpuLookups, GpuProfile
from host.packets import (
    Header,
    gpu_vectors,
    parse_errors,
    parse_header,
    parse_lookup_requests,
    parse_pooled,
    query_packets,
)
from host.pcie import Pcie, PcieProfile
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, Opcode
from sim.engines import Engine
from sim.events import EventQueue
from sim.ports import LAST_BIT, PacketTap, with_framing
from sim.results import Step

__all__ = ["Node", "ProtocolError"]

Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Values of rows: (tables, rows) to float32 ``[n, dimension]``."""


class ProtocolError(Exception):
    """The NIC sent something that it must never send."""


class Node:
    """One NIC with its host.

    Parameters
    ----------
    number: the node's number.
    engine: the running NIC.
    config: its configuration.
    rows: the rows in GPU memory.
    dimension: of a vector.
    pcie, gpu: profiles of the timing models.
    in_flight: steps that this host keeps going at once.
    """

    def __init__(self, number: int, engine: Engine, config: NicConfig, rows: Rows, dimension: int,
                 pcie: PcieProfile, gpu: GpuProfile, in_flight: int):
        self.number = number
        self.engine = engine
        self._config = config
        self._rows = rows
        self._pcie = Pcie(pcie)
        self._gpu: GpuLookups[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = GpuLookups(
            gpu, 4 * dimension)
        self._in_flight = in_flight
        # The NIC reports credits at the latest when a quarter of the buffer is free.
        self._query_packet_beats = min(config.host_payload_beats, config.query_beats // 2)
        self._events = EventQueue()
        self._steps: dict[int, Step] = {}
        self._going = 0
        self._to_start: deque[Step] = deque()
        self._to_send: deque[tuple[Step, np.ndarray]] = deque()
        self._sent_beats = 0
        self._consumed_beats = 0
        self._host_tx = PacketTap(engine, "host_tx")
        self._net_tx = PacketTap(engine, "net_tx")
        self.errors: list[tuple[int, int]] = []
        self.actions = 0
        """Things that this host has done: while none of them does anything, nothing gets on."""
        self.host_bytes = {"to_nic": 0, "from_nic": 0}
        self.finished: Callable[[Step, float], None] = lambda step, time: None
        engine.set_rate("host_tx", cycles_per_beat=BEAT_BYTES * self._pcie.from_nic.cycles_per_byte,
                        last_bit=LAST_BIT, burst=64)

    @property
    def lookahead(self) -> int:
        """Cycles that the NIC may run before its host must look."""
        return self._pcie.lookahead

    @property
    def quiet(self) -> bool:
        """Nothing moves in the NIC or the host until something arrives from outside."""
        return (bool(self.engine.get_signal("idle")) and not self._events
                and not self.engine.waiting("host_rx") and not self.engine.waiting("net_rx"))

    @property
    def gpu(self) -> GpuLookups:
        """The GPU's gathers, for its counts."""
        return self._gpu

    @property
    def pcie(self) -> Pcie:
        """The PCIe connection, for its counts."""
        return self._pcie

    def submit(self, step: Step, time: float) -> None:
        """Give this host its share of ``step``, to be started in its turn, not before ``time``."""
        if not step.left[self.number]:
            return
        self._steps[step.number] = step
        self._events.at(time, lambda now: self._enqueue(step, now))

    def host_quantum(self, end: int) -> None:
        """Let the host act on what the NIC sent up to cycle ``end``."""
        self._receive()
        horizon = end + self._pcie.latency
        for time, action in self._events.until(horizon):
            self.actions += 1
            action(time)

    def frames(self) -> list[tuple[np.ndarray, int]]:
        """Return the frames that left for the network since the last call, with their cycles."""
        return self._net_tx.take()

    def deliver(self, frame: np.ndarray, start: float, cycles_per_byte: float) -> None:
        """Let ``frame`` reach the NIC from cycle ``start`` on, at the rate of its link."""
        beat_ends = start + np.arange(1, len(frame) + 1) * (BEAT_BYTES * cycles_per_byte)
        self.engine.push("net_rx", with_framing(frame), np.ceil(beat_ends).astype(np.uint64))

    def _receive(self) -> None:
        for packet, cycle in self._host_tx.take():
            self.host_bytes["from_nic"] += packet.nbytes
            self._events.at(float(cycle) + self._pcie.latency,
                            lambda now, packet=packet: self._packet(packet, now))

    def _packet(self, packet: np.ndarray, now: float) -> None:
        head = parse_header(packet[0])
        # Beats of queries that the NIC took out of its buffer: a count that wraps at 2^16.
        self._consumed_beats += (head.credit - self._consumed_beats) & 0xFFFF
        if head.opcode == Opcode.LOOKUP_REQUESTS:
            wanted = parse_lookup_requests(packet, head.count)
            request = (head.step, wanted["table"], wanted["row"], wanted["landing"])
            self._launched(self._gpu.arrive(now, request, head.count))
        elif head.opcode == Opcode.POOLED:
            self._pooled(packet, head, now)
        elif head.opcode == Opcode.ERRORS:
            found = parse_errors(packet, head.count)
            for sample, status in zip(found["sample"].tolist(), found["status"].tolist()):
                self._refused(sample, status, now)
        elif head.opcode != Opcode.CREDIT:
            raise ProtocolError(f"node {self.number} sent opcode {head.opcode:#x} to its host")
        self._send_queries(now)

    # Rows for the NIC

    def _launched(self, gather: Gather | None) -> None:
        if gather is not None:
            self._events.at(gather.end, lambda now: self._gathered(gather, now))

    def _gathered(self, gather: Gather, now: float) -> None:
        for step, tables, rows, misses in gather.lists:
            vectors = self._rows(tables.astype(np.int64), rows.astype(np.int64))
            for packet in gpu_vectors(misses, vectors, node=self.number, step=step,
                                      payload_beats=self._config.host_payload_beats):
                self._send(packet, now)
        self._launched(self._gpu.finish(now))

    def _send(self, packet: np.ndarray, now: float) -> float:
        """Move a packet to the NIC; return when its last byte left the host."""
        self.host_bytes["to_nic"] += packet.nbytes
        link = self._pcie.to_nic
        start, end = link.send(now, packet.nbytes)
        beat_ends = start + np.arange(1, len(packet) + 1) * (BEAT_BYTES * link.cycles_per_byte)
        arrivals = np.ceil(beat_ends + self._pcie.latency).astype(np.uint64)
        self.engine.push("host_rx", with_framing(packet), arrivals)
        return end

    # Queries and results

    def _enqueue(self, step: Step, now: float) -> None:
        self._to_start.append(step)
        self._start(now)

    def _start(self, now: float) -> None:
        while self._to_start and self._going < self._in_flight:
            step = self._to_start.popleft()
            first, stop = int(step.shares[self.number]), int(step.shares[self.number + 1])
            self._going += 1
            for packet in query_packets(step.samples.slice(first, stop), step.first + first,
                                        node=self.number, step=step.number,
                                        payload_beats=self._query_packet_beats):
                self._to_send.append((step, packet))
        self._send_queries(now)

    def _send_queries(self, now: float) -> None:
        while self._to_send:
            step, packet = self._to_send[0]
            beats = len(packet) - 1
            if self._sent_beats + beats - self._consumed_beats > self._config.query_beats:
                return
            self._to_send.popleft()
            self._sent_beats += beats
            if step.started < 0 or now < step.started:
                step.started = now
            self._send(packet, now)

    def _pooled(self, packet: np.ndarray, head: Header, now: float) -> None:
        sample, first_bag, last, vectors = parse_pooled(packet, head.count)
        step = self._step_of(sample)
        step.place(self.number, step.first + (sample - step.first & 0xFFFFFFFF), first_bag,
                   vectors)
        at = sample - step.first & 0xFFFFFFFF
        if last != (step.filled[at] == step.pooled.shape[1]):
            raise ProtocolError(f"sample {sample} ended after {step.filled[at]} bags")
        if last:
            self._answered(step, now)

    def _refused(self, sample: int, status: int, now: float) -> None:
        self.errors.append((sample, status))
        step = self._find(sample)
        if step is not None:
            step.refuse(self.number, step.first + (sample - step.first & 0xFFFFFFFF), status)
            self._answered(step, now)

    def _answered(self, step: Step, now: float) -> None:
        step.finished = max(step.finished, now)
        if not step.left[self.number]:
            del self._steps[step.number]
            self._going -= 1
            self.finished(step, now)
            self._start(now)

    def _find(self, sample: int) -> Step | None:
        for step in self._steps.values():
            if (sample - step.first & 0xFFFFFFFF) < len(step.samples):
                return step
        return None

    def _step_of(self, sample: int) -> Step:
        step = self._find(sample)
        if step is None:
            raise ProtocolError(
                f"node {self.number} answered sample {sample}, which is not under way")
        return step
