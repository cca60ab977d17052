"""The last part of the gradient path: rows are fetched, updated, and written to GPU memory."""

from itertools import pairwise
from math import ceil, inf

from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread
from rtl.formats import BEAT_BYTES
from sim.node.events import EventQueue

__all__ = ["RowWrites"]

_GROUPS = 32
"""Groups of a pass at most: more of them share the launches of the GPU all the same."""


class RowWrites:
    """Rows of an owner on their way through the optimizer to GPU memory, in groups.

    A group is what ``timeout`` cycles bring, or more in a long pass. Those of its rows that the
    local cache does not hold are asked for in one list; groups leave in order, when their last row
    is there, at most ``ring`` rows are under way at once, and a packet brings each to the GPU.
    Lists and packets that come while all streams of the GPU, or the thread that launches, are busy
    share the next launch (:class:`host.timing.gpu.GpuLookups`).

    Parameters
    ----------
    gpu: its profile. beats: of a row, each of ``per_beat`` cycles in the optimizer.
    ring: rows. timeout: cycles. pcie: cycles of one way over PCIe.
    """

    def __init__(self, gpu: GpuProfile, beats: int, per_beat: int, ring: int, timeout: int,
                 pcie: float):
        self._beats, self._per_row, self._ring = beats, per_beat * beats, ring
        self._timeout, self._pcie = timeout, pcie
        self._events = EventQueue()
        thread = LaunchThread(gpu, self._events.at)
        self._gathers, self._scatters = (GpuLookups[int](gpu, BEAT_BYTES, thread)
                                         for _ in range(2))
        thread.join(lambda now: self._gathered(self._gathers.start(now)))
        thread.join(lambda now: self._scattered(self._scatters.start(now)))
        self._come: list[float] = []
        self._rows: list[int] = []
        self._missed: list[int] = []
        self._ready: list[bool] = []
        self._entered = self._left = self._under_way = 0
        self._free = self._written = 0.0

    def add(self, start: float, cycles: float, rows: float, missed: float) -> None:
        """Add ``rows`` that come evenly in the ``cycles`` from ``start`` on, ``missed`` of them no
        local cache holds."""
        count = max(1, min(_GROUPS, ceil(cycles / self._timeout)))
        self._come += [start + part * cycles / count for part in range(count)]
        for groups, whole in ((self._rows, rows), (self._missed, missed)):
            ends = [round(whole * part / count) for part in range(count + 1)]
            groups += [after - before for before, after in pairwise(ends)]

    def end(self) -> float:
        """Return when the GPU has written the last row; 0 if there is none."""
        self._ready = [False] * len(self._come)
        self._enter(0.0)
        for time, action in self._events.until(inf):
            action(time)
        return self._written

    def _enter(self, now: float) -> None:
        """Let groups in, as far as the ring has room."""
        while self._entered < len(self._come) and (
                not self._under_way
                or self._under_way + self._rows[self._entered] <= self._ring):
            group = self._entered
            self._entered += 1
            self._under_way += self._rows[group]
            self._events.at(max(now, self._come[group]), lambda time, group=group: self._look_up(
                group, time))

    def _look_up(self, group: int, now: float) -> None:
        if self._missed[group]:
            self._events.at(now + self._timeout + self._pcie, lambda time: self._gathered(
                self._gathers.arrive(time, group, self._missed[group] * self._beats)))
        else:
            self._found(group, now)

    def _gathered(self, gather: Gather[int] | None) -> None:
        """Follow a gather, if one starts, and those behind it."""
        if gather is None:
            return

        def ended(now: float) -> None:
            for group in gather.lists:
                self._events.at(now + self._pcie, lambda time, group=group: self._found(
                    group, time))
            self._gathered(self._gathers.finish(now))

        self._events.at(gather.end, ended)

    def _found(self, group: int, now: float) -> None:
        """Let groups leave, as far as their rows are there."""
        self._ready[group] = True
        while self._left < len(self._ready) and self._ready[self._left]:
            rows = self._rows[self._left]
            self._free = max(self._free, now) + rows * self._per_row
            if rows:
                self._events.at(
                    self._free + self._timeout + self._pcie, lambda time, rows=rows:
                    self._scattered(self._scatters.arrive(time, rows, rows * self._beats)))
            self._under_way -= rows
            self._left += 1
        self._enter(now)

    def _scattered(self, scatter: Gather[int] | None) -> None:
        """Follow a scatter, if one starts, and those behind it."""
        if scatter is None:
            return

        def ended(now: float) -> None:
            self._written = max(self._written, now)
            self._scattered(self._scatters.finish(now))

        self._events.at(scatter.end, ended)
