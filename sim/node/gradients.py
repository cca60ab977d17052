"""The training half of a node's host: gradients for its NIC, and the NIC's replies."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from host.dlrm.dlrm import weighted_of
from host.dlrm.weighted import sent_gradients
from host.samples import Samples
from host.timing.gpu import LaunchThread
from host.wire.bag_gradients import BagGradients, gradient_bag_packets
from host.wire.gradients import end_packet, gradient_packets
from host.wire.packets import Header
from host.wire.partials import Partials, parse_partials, partial_packets
from host.wire.steps import StepNews, parse_steps
from rtl.config import LANES, NicConfig
from rtl.formats import Opcode, ReductionLevel, StepKind
from sim.node.errors import ProtocolError
from sim.node.events import EventQueue, Rank
from sim.node.gpu_memory import GpuMemory
from sim.node.gpu_updates import GpuUpdates
from sim.node.queries import newly_consumed

__all__ = ["RefusedMessage", "TrainingHost", "TrainingOf", "gradient_payload"]

TrainingOf = Callable[[EventQueue, Callable[[np.ndarray, float], None], Callable[[float], float],
                       LaunchThread], "TrainingHost"]
"""Function that makes a `TrainingHost`.

Arguments: a node's events; a function that sends a packet at a given time; a function from the time
    at which a gather would end to the time at which it ends; the launching thread.
"""

_NO_SAMPLE = 0xFFFFFFFF
_GETS_ON = (Opcode.STEP_REPORTS, Opcode.ROW_UPDATES, Opcode.STATE_UPDATES)


class RefusedMessage(NamedTuple):
    """A message that the NIC rejected: its step, modulo 2^16, and :class:`rtl.formats.Status`."""

    step: int
    status: int


def gradient_payload(config: NicConfig) -> int:
    """Return the beats after the header of a gradient packet to a NIC of ``config``."""
    # The NIC reports its consumption after a quarter of the window at the latest.
    return min(config.host_payload_beats, config.gradient_credits // 2)


class TrainingHost:
    """The part of a host that handles gradients of its samples and updates of its node's rows.

    A step is opened when its lookups begin, its `gradients` are sent later, and it ends with a
    report of the NIC. The host keeps the beats that a NIC spills until the pass has ended, and then
    returns them (docs/training.md).

    Parameters
    ----------
    node: its number.
    memory: the node's tables.
    window: payload beats that may be in flight to the NIC or wait in it.
    payload_beats: most payload beats of a packet, see `gradient_payload`.
    events: of the host.
    send: function that sends a packet at a given time.
    updates: updates of rows by the GPU; None if the NIC updates all rows.

    Members
    -------
    step: number of the open or last step, -1 before the first.
    finished: host cycle of the NIC's report that this step has ended, None while it is open.
    keys: keys whose rows this node wrote in the last step, ascending.
    refused: messages that the NIC rejected.
    spilled, passes: spilled beats, and passes with spilled beats, by
        :class:`rtl.formats.ReductionLevel`.
    progress: the last host cycle in which the NIC took gradients or updated rows, a pass or a step
        ended, or gradients began.
    """

    def __init__(self, node: int, memory: GpuMemory, window: int, payload_beats: int,
                 events: EventQueue, send: Callable[[np.ndarray, float], None],
                 updates: GpuUpdates | None = None):
        self._node, self.memory, self.updates = node, memory, updates
        self._width = min(memory.store.model.width, LANES)
        self._window, self._payload_beats = window, payload_beats
        self._events, self._send = events, send
        self._packets: deque[np.ndarray] = deque()
        self._sent_beats = self._consumed_beats = 0
        self._kept: list[list[Partials]] = [[], []]
        self._passed: list[int | None] = [None, None]
        self._begun = False
        self.step = -1
        self.finished: float | None = None
        self.keys = np.empty(0, np.int64)
        self.refused: list[RefusedMessage] = []
        self.spilled, self.passes = [0, 0], [0, 0]
        self.progress = 0.0
        self._handlers: Mapping[int, Callable[[np.ndarray, Header, float], None]] = {
            Opcode.SPILLED: self._take_spilled, Opcode.STEP_REPORTS: self._take_reports,
            Opcode.ROW_UPDATES: memory.take_rows, Opcode.STATE_REQUESTS: memory.take_state_requests,
            Opcode.STATE_UPDATES: memory.take_states}

    @property
    def busy(self) -> bool:
        """Whether gradients are in flight: the host may then answer its NIC at once."""
        return self._begun

    @property
    def waiting(self) -> int:
        """Packets held back for lack of credit."""
        return len(self._packets)

    def open(self, step: int) -> None:
        """Open ``step``."""
        self.step, self.finished = step, None

    def gradients(self, share: Samples, gradients: np.ndarray, time: float,
                  others: Iterable[np.ndarray] = ()) -> None:
        """Send the gradients ``[n, tables, d]`` of this node's ``share`` of the step at ``time``.

        A weighted bag has each row once. ``others``: packets sent before them, possibly invalid
        ones. A packet longer than the NIC accepts never returns its credit.
        """
        bags: list[np.ndarray] = []
        if self.updates is not None:
            share, gradients, foreign = self.updates.share(share, gradients, self.step)
            bags = gradient_bag_packets(foreign, node=self._node, step=self.step,
                                        payload_beats=self._payload_beats)
        weighted = weighted_of(self.memory.store.model)
        if self.updates is not None:
            weighted = weighted[~self.updates.mine]
        _, lengths, vectors = sent_gradients(share, gradients, weighted)
        self.bags(share.tables, share.rows, lengths, vectors, time, (*others, *bags))

    def bags(self, tables: np.ndarray, rows: np.ndarray, lengths: np.ndarray,
             gradients: np.ndarray, time: float, others: Iterable[np.ndarray] = ()) -> None:
        """Send the gradients of bags at ``time``, and end those of the step.

        ``tables``, ``rows``: of the keys, integers ``[k]``, bag by bag. ``lengths``: keys of each
        bag, integers ``[n]``. ``gradients``: float32 ``[n, d]``. ``others``: as of `gradients`.
        """
        packets = gradient_packets(tables, rows, lengths, gradients, node=self._node,
                                   step=self.step, payload_beats=self._payload_beats)
        all_of_it = [*others, *packets, end_packet(node=self._node, step=self.step)]
        self.progress = max(self.progress, time)
        self._events.at(time, lambda now: self._begin(all_of_it, now), Rank.HANDED_OUT)

    def _begin(self, packets: list[np.ndarray], now: float) -> None:
        self._begun = True
        if self.updates is not None:
            self.updates.begin(now)
        self._packets.extend(packets)
        self._send_some(now)

    def packet(self, packet: np.ndarray, head: Header, now: float) -> bool:
        """Take a packet of the NIC at ``now``; return whether it belongs to training.

        :class:`ProtocolError` for a packet that violates the protocol.
        """
        taken = self._consumed(head.acknowledge)
        handler = self._handlers.get(head.opcode)
        if handler is not None:
            if self.finished is not None or head.step != self.step & 0xFFFF:
                raise ProtocolError(f"node {self._node} sent opcode {head.opcode:#x} of step "
                                    f"{head.step}, which is not open")
            handler(packet, head, now)
        # Spilled beats may be a peer's, which could send without end and never end its step.
        if taken or head.opcode in _GETS_ON:
            self.progress = max(self.progress, now)
        self._send_some(now)
        return handler is not None

    def take_bags(self, gradients: BagGradients, step: int, now: float) -> None:
        """Take bags with gradients of ``step``, modulo 2^16, of other nodes."""
        if self.updates is None or self.finished is not None or step != self.step & 0xFFFF:
            raise ProtocolError(f"node {self._node} sent bags with gradients of step {step}, which "
                                f"is not open")
        self.progress = max(self.progress, now)
        self.updates.take(gradients, now)

    def errors(self, samples: np.ndarray, steps: np.ndarray, statuses: np.ndarray) -> None:
        """Take the records of an ERRORS packet."""
        self.refused += [RefusedMessage(step, status) for sample, step, status in zip(
            samples.tolist(), steps.tolist(), statuses.tolist()) if sample == _NO_SAMPLE]

    # Credit

    def _consumed(self, acknowledged: int) -> bool:
        more = newly_consumed(acknowledged, self._consumed_beats)
        self._consumed_beats += more
        if self._consumed_beats > self._sent_beats:
            raise ProtocolError(f"node {self._node} acknowledged {self._consumed_beats} beats of "
                                f"gradients, of which {self._sent_beats} were sent")
        return more > 0

    def _send_some(self, now: float) -> None:
        while self._packets:
            beats = len(self._packets[0]) - 1
            if self._sent_beats + beats - self._consumed_beats > self._window:
                return
            self._sent_beats += beats
            self._send(self._packets.popleft(), now)

    # Spilled beats

    def _take_spilled(self, packet: np.ndarray, head: Header, _: float) -> None:
        partials = parse_partials(packet, head.count, self._width)
        level = int(partials.levels[0])
        if (partials.levels != level).any():
            raise ProtocolError(f"node {self._node} spilled beats of two levels in a packet")
        self._kept[level].append(partials)
        self._give_back(level)

    def _take_reports(self, packet: np.ndarray, head: Header, now: float) -> None:
        for news in parse_steps(packet, head.count):
            if news.kind == StepKind.PASSED:
                self._take_pass(news)
            elif news.kind == StepKind.DONE:
                self._end(now)
            elif news.kind == StepKind.END and self.updates is not None:
                self.updates.end(news.count, now)
            else:
                raise ProtocolError(f"node {self._node} reported a step record of kind "
                                    f"{news.kind} to its host")

    def _take_pass(self, news: StepNews) -> None:
        if self._passed[news.level] is not None:
            raise ProtocolError(f"node {self._node} ended a pass before it had spilled the "
                                f"previous pass completely")
        if news.count:
            self.passes[news.level] += 1
            self.spilled[news.level] += news.count
            self._passed[news.level] = news.count
        self._give_back(news.level, ended=True)

    def _give_back(self, level: int, ended: bool = False) -> None:
        """Return the spilled beats of a pass to the NIC after the pass has ended and all of them
        have arrived."""
        kept = sum(len(part.rows) for part in self._kept[level])
        count = self._passed[level]
        if count is None and not (ended and kept):
            return
        if kept > (count or 0):
            raise ProtocolError(f"node {self._node} spilled {kept} beats at level "
                                f"{ReductionLevel(level).name}, and reported {count or 0}")
        if kept < (count or 0):
            return
        parts, self._kept[level], self._passed[level] = self._kept[level], [], None
        tables, rows, beats, _, values = map(np.concatenate, zip(*parts))
        self._packets.extend(partial_packets(
            Opcode.RETURNED, tables, rows, beats, values, node=self._node, step=self.step,
            payload_beats=self._payload_beats, level=level))

    def _end(self, now: float) -> None:
        for left, what in ((not self._begun, "gradients not begun"),
                           (self._packets, "gradients not sent"),
                           (any(self._kept) or any(self._passed), "spilled beats not returned"),
                           (self.memory.unfinished, "rows or states not written"),
                           (self.updates is not None and self.updates.unfinished,
                            "gradients of bags not added")):
            if left:
                raise ProtocolError(f"node {self._node} ended step {self.step} with {what}")
        self.keys = self.memory.end_step()
        self.finished, self._begun = now, False
