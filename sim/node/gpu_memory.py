"""A node's rows and optimizer states in GPU memory, which the NIC reads and writes in training."""

from collections import defaultdict, deque
from collections.abc import Callable
from math import inf

import numpy as np

from host.dlrm.row_store import RowStore
from host.samples import KEY_ROW_BITS
from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread
from host.wire.packets import Header, gpu_vectors, parse_records, record_fields
from host.wire.partials import parse_partials
from host.wire.rows import Answer
from host.wire.steps import parse_states, state_packets, written_packet
from rtl.config import LANES, beats_of
from rtl.formats import BEAT_INDEX_BITS, LookupRecord, Opcode
from sim.node.errors import ProtocolError
from sim.node.events import EventQueue

__all__ = ["GpuMemory", "store_answers"]

Write = tuple[int, Callable[[], None]]
"""The number of records in a packet, and the action that writes the records to memory."""


def store_answers(store: RowStore, node: int, payload_beats: int) -> Answer:
    """Return a function that makes the GPU_VECTORS packets of ``node`` from its current rows.

    ``payload_beats``: most beats of a packet after its header.
    """
    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        wanted = record_fields(LookupRecord, records)
        vectors, _ = store.read(_keys(wanted["table"], wanted["row"]))
        return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                           payload_beats=payload_beats)

    return answer


def _keys(tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return tables.view(np.int64) << KEY_ROW_BITS | rows.view(np.int64)


class GpuMemory:
    """The tables of one node, and their updates by its NIC.

    Gathers serve requests for states as well as for rows; scatters write updates from the NIC.
    States and rows each have a stream of their own. Data that arrive while a scatter runs join the
    next scatter, and a WRITTEN packet follows each scatter.

    Parameters
    ----------
    node: its number.
    store: its rows and states.
    owns: function from keys, given as tables and rows, to whether they are this node's.
    gpu: the profile.
    payload_beats: most beats of a packet after its header.
    events: of the host.
    send: function that sends a packet at a given time.
    awake: function from the time at which a gather or scatter would end to the time at which it
        ends; infinite for never.
    thread: thread that launches scatters and gathers, also the node's gathers of rows; None gives
        each launch its own thread.

    Members: ``rows``, ``states``: row beats and states received for writing; ``updates``: steps
        whose rows the GPU has updated itself.
    """

    def __init__(self, node: int, store: RowStore,
                 owns: Callable[[np.ndarray, np.ndarray], np.ndarray], gpu: GpuProfile,
                 payload_beats: int, events: EventQueue,
                 send: Callable[[np.ndarray, float], None], awake: Callable[[float], float],
                 thread: LaunchThread | None = None):
        self._node, self.store, self._owns = node, store, owns
        dimension = store.model.width
        self._width, self._beats = min(dimension, LANES), beats_of(dimension)
        self._gathers: GpuLookups[tuple[int, np.ndarray, np.ndarray]] = GpuLookups(
            gpu, 4, thread)
        self._scatters: GpuLookups[tuple[int, Write]] = GpuLookups(gpu, 4 * self._width, thread)
        if thread:
            thread.join(lambda now: self._schedule_gather_end(self._gathers.start(now)))
            thread.join(lambda now: self._schedule_scatter_end(self._scatters.start(now)))
        self._payload_beats, self._events = payload_beats, events
        self._send, self._awake = send, awake
        self._asked: defaultdict[int, deque[int]] = defaultdict(deque)
        self._step_beats: list[np.ndarray] = []
        self._unwritten = 0
        self.rows = self.states = self.updates = 0

    @property
    def unfinished(self) -> int:
        """Row beats and states not yet written, and states that the NIC has not returned."""
        return self._unwritten + sum(map(len, self._asked.values()))

    def end_step(self) -> np.ndarray:
        """Return the keys whose rows were written since the last call, ascending.

        :class:`ProtocolError` if a beat was written twice, or a row only in part.
        """
        places = np.concatenate([np.empty(0, np.int64), *self._step_beats])
        self._step_beats = []
        keys, counts = np.unique(places >> BEAT_INDEX_BITS, return_counts=True)
        if len(np.unique(places)) < len(places):
            raise ProtocolError(f"node {self._node} updated a row twice in a step")
        if (counts != self._beats).any():
            raise ProtocolError(f"node {self._node} updated only a part of a row")
        return keys

    def take_state_requests(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take STATE_REQUESTS."""
        wanted = parse_records(LookupRecord, packet[1:], head.count)
        keys = self._checked(wanted["table"], wanted["row"])
        landings = wanted["landing"]
        for landing, key in zip(landings.tolist(), keys.tolist()):
            self._asked[landing].append(key)
        self._schedule_gather_end(
            self._gathers.arrive(now, (head.step, landings, keys), head.count))

    def take_rows(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take ROW_UPDATES."""
        tables, rows, beats, _, values = parse_partials(packet, head.count, self._width)
        keys = self._checked(tables, rows)
        if int(beats.max()) >= self._beats:
            raise ProtocolError(f"node {self._node} updated beat {int(beats.max())} of a row, "
                                f"which has {self._beats}")
        beats = beats.view(np.int64)
        self._step_beats.append(keys << BEAT_INDEX_BITS | beats)
        self.rows += head.count
        self._scatter(head, now, lambda: self._put_rows(keys, beats, values))

    def take_states(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take STATE_UPDATES. Each update changes the oldest state requested under its landing."""
        landings, states = parse_states(packet, head.count)
        keys = []
        for landing in landings.tolist():
            if not self._asked[landing]:
                raise ProtocolError(f"node {self._node} updated the state of landing {landing}, "
                                    f"for which no state was requested")
            keys.append(self._asked[landing].popleft())
        self.states += head.count
        self._scatter(head, now, lambda: self._put_states(np.array(keys), states))

    def _checked(self, tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return keys; :class:`ProtocolError` unless all are rows of this node."""
        of_model = np.array(self.store.model.rows, np.uint64)
        known = tables < len(of_model)
        known[known] &= rows[known] < of_model[tables[known]]
        if not known.all() or not self._owns(tables, rows).all():
            raise ProtocolError(f"node {self._node} named a row that it does not own to its host")
        return _keys(tables, rows)

    # State gathers

    def _schedule_gather_end(self, gather: Gather | None) -> None:
        if gather is not None and (end := self._awake(gather.end)) < inf:
            self._events.at(end, lambda now: self._finish_gather(gather, now))

    def _finish_gather(self, gather: Gather, now: float) -> None:
        for step, landings, keys in gather.lists:
            _, states = self.store.read(keys)
            for packet in state_packets(Opcode.STATES, landings, states, node=self._node,
                                        step=step, payload_beats=self._payload_beats):
                self._send(packet, now)
        self._schedule_gather_end(self._gathers.finish(now))

    # Scatters of rows and states

    def _scatter(self, head: Header, now: float, put: Callable[[], None]) -> None:
        self._unwritten += head.count
        self._schedule_scatter_end(
            self._scatters.arrive(now, (head.step, (head.count, put)), head.count))

    def _schedule_scatter_end(self, scatter: Gather | None) -> None:
        if scatter is not None and (end := self._awake(scatter.end)) < inf:
            self._events.at(end, lambda now: self._finish_scatter(scatter, now))

    def _finish_scatter(self, scatter: Gather, now: float) -> None:
        for _, (count, put) in scatter.lists:
            put()
            self._unwritten -= count
        # Scatters may end out of order, so WRITTEN carries the total written.
        self._tell(scatter.lists[-1][0], now)
        self._schedule_scatter_end(self._scatters.finish(now))

    def _tell(self, step: int, now: float) -> None:
        """Send the total written."""
        total = self.rows + self.states + self.updates - self._unwritten
        self._send(written_packet(total, node=self._node, step=step), now)

    def updated(self, keys: np.ndarray, step: int, now: float) -> None:
        """Report the update of the rows ``keys``, ascending, which the GPU has written in ``step``.
        """
        beats = np.arange(self._beats)
        self._step_beats.append((keys[:, None] << BEAT_INDEX_BITS | beats).reshape(-1))
        self.updates += 1
        self._tell(step & 0xFFFF, now)

    def _put_rows(self, keys: np.ndarray, beats: np.ndarray, values: np.ndarray) -> None:
        unique, which = np.unique(keys, return_inverse=True)
        vectors, states = self.store.read(unique)
        vectors.reshape(len(unique), self._beats, self._width)[which, beats] = values
        self.store.write(unique, vectors, states)

    def _put_states(self, keys: np.ndarray, states: np.ndarray) -> None:
        vectors, _ = self.store.read(keys)
        self.store.write(keys, vectors, states)
