"""The resident kernel: a GPU kernel that runs without end and answers request lists in a ring."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from host.timing.gpu import GpuLookups, GpuProfile
from sim.node.events import EventQueue

__all__ = ["RequestList", "ResidentKernel"]


class RequestList(NamedTuple):
    """Lookup records that a NIC requests in a ``step``."""

    step: int
    records: np.ndarray


class ResidentKernel:
    """Answers request lists in order, each in the slot of its number, and stores its counts.

    The kernel polls for a count of lists, and for an empty slot if all are full. It sees either of
    them after the launch latency of ``gpu``, which models the poll. Then it gathers, one list after
    another, through the GPU's memory. After reading a list it stores the number of lists read to
    the NIC; after filling a slot, the number of slots filled.

    Parameters
    ----------
    gpu: the profile. The kernel makes no launch or copy calls.
    row_bytes: bytes of a vector.
    events: of the host.
    awake: function from the time at which the kernel would act to the time at which it acts;
        infinite for never.
    store: function that stores a count, modulo 2^16, to a register of the NIC at a given time.

    Members
    -------
    consumed: lists read.
    emptied: slots that the NIC has read.
    slots: slots of the ring.
    fill: callback, called with the number and list of each filled slot.
    """

    def __init__(self, gpu: GpuProfile, row_bytes: int, events: EventQueue,
                 awake: Callable[[float], float], store: Callable[[str, int, float], None]):
        # Each list has a gather of its own.
        self.gathers: GpuLookups[tuple[int, RequestList]] = GpuLookups(
            replace(gpu, call_us=0.0, streams=1 << 16), row_bytes)
        self._events, self._awake, self._store = events, awake, store
        self._waiting: deque[RequestList] = deque()
        self._taken = self.consumed = self.emptied = 0
        self.slots = 1
        self.fill: Callable[[int, RequestList], None] = lambda number, filled: None

    def take(self, lists: Sequence[RequestList], now: float) -> None:
        """Take ``lists``, announced by a count at ``now``."""
        self._waiting.extend(lists)
        self._start(now)

    def empty(self, count: int, now: float) -> None:
        """Take ``count`` more slots as empty, announced by a count at ``now``."""
        self.emptied += count
        self._start(now)

    def _start(self, now: float) -> None:
        while self._waiting and self._taken - self.emptied < self.slots:
            taken, number = self._waiting.popleft(), self._taken
            self._taken += 1
            gather = self.gathers.arrive(now, (number, taken), len(taken.records))
            assert gather is not None
            self._at(gather.first, self._read)
            self._at(gather.end, lambda now, number=number, taken=taken:
                     self._finish(number, taken, now))

    def _at(self, time: float, action: Callable[[float], None]) -> None:
        if (time := self._awake(time)) < inf:
            self._events.at(time, action)

    def _read(self, now: float) -> None:
        self.consumed += 1
        self._store("lists_consumed", self.consumed, now)

    def _finish(self, number: int, filled: RequestList, now: float) -> None:
        self.fill(number, filled)
        self._store("vectors_produced", number + 1, now)
        self.gathers.finish(now)
