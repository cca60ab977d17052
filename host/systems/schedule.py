"""List scheduler: when each stage runs on resources that stages hold whole or share."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

import numpy as np

from host.systems.stage import Step

__all__ = ["Schedule", "schedule"]

_FULL = 1 + 1e-9
"""All of a resource, and the rounding errors of sums of shares."""


@dataclass(frozen=True)
class Schedule:
    """Result of :func:`schedule`.

    Members, in microseconds
    ------------------------
    released: when each step could begin, float64 ``[steps]``.
    ready, start, end: for each step, float64 ``[stages]``: when all predecessors are done, when
        the stage starts and when it ends.
    held: for each step and stage the stage, (step, stage), whose end it waited for on a resource,
        or None if it started as soon as it was ready.
    busy: how long each resource served; a stage that holds a share counts with that share.
    """

    released: np.ndarray
    ready: list[np.ndarray]
    start: list[np.ndarray]
    end: list[np.ndarray]
    held: list[list[tuple[int, int] | None]]
    busy: dict[Hashable, float]

    @property
    def finished(self) -> np.ndarray:
        """When the last stage of each step ended, float64 ``[steps]``."""
        return np.array([end.max() if len(end) else released
                         for end, released in zip(self.end, self.released)])


def schedule(steps: Sequence[Step], in_flight: int = 1,
             arrivals: Sequence[float] | None = None) -> Schedule:
    """Run ``steps`` with at most ``in_flight`` of them at once.

    Step k is released when step k - ``in_flight`` is finished, but not before its arrival and not
    before step k - 1. A ready stage starts when its shares of all its resources are free; if
    several could start, the earliest step goes first, then the earliest stage of the step. A stage
    never waits for one that cannot start yet: resources are granted in time order. Only what is
    left of a resource that an earlier one waits for is kept for that one, or small shares would
    keep a large one waiting for ever.

    Raises ``ValueError`` for ``in_flight`` below 1, or arrivals that are too few or not ascending.
    """
    if in_flight < 1:
        raise ValueError(f"in_flight must be at least 1, not {in_flight!r}")
    if arrivals is not None and (len(arrivals) != len(steps)
                                 or any(b < a for a, b in pairwise(arrivals))):
        raise ValueError(f"arrivals must be {len(steps)} times in ascending order")
    return _Run(steps, in_flight, arrivals).execute()


class _Run:
    """The state of a schedule under construction."""

    def __init__(self, steps: Sequence[Step], in_flight: int, arrivals: Sequence[float] | None):
        self._steps, self._in_flight = steps, in_flight
        self._arrivals = arrivals or [0.0] * len(steps)
        self._released = np.full(len(steps), inf)
        self._ready, self._start, self._end = (
            [np.full(len(step.stages), inf) for step in steps] for _ in range(3))
        self._held: list[list[tuple[int, int] | None]] = [[None] * len(s.stages) for s in steps]
        self._missing = [[len(stage.after) for stage in step.stages] for step in steps]
        self._later: list[list[list[int]]] = [[[] for _ in step.stages] for step in steps]
        for step, later in zip(steps, self._later):
            for number, stage in enumerate(step.stages):
                for other in stage.after:
                    later[other].append(number)
        self._left = [len(step.stages) for step in steps]
        self._finish = np.zeros(len(steps))
        self._events: list[tuple[float, int, int]] = []  # time, step, ending stage; -1: released
        self._waiting: list[tuple[int, int]] = []        # ready stages, by step and number
        self._last: dict[Hashable, tuple[int, int]] = {}  # last stage to hold each resource
        self._taken: dict[Hashable, float] = {}  # shares in use
        self._busy: dict[Hashable, float] = {}
        self._unreleased, self._planned = 0, 0.0

    def execute(self) -> Schedule:
        self._release()
        while self._events:
            now = self._events[0][0]
            while self._events and self._events[0][0] == now:
                _, step, stage = heappop(self._events)
                if stage < 0:
                    self._open(step, now)
                else:
                    self._ended(step, stage, now)
            self._begin(now)
        return Schedule(self._released, self._ready, self._start, self._end, self._held,
                        self._busy)

    def _release(self) -> None:
        """Schedule the release of each further step whose release time is known."""
        while self._unreleased < len(self._steps):
            step, before = self._unreleased, self._unreleased - self._in_flight
            if before >= 0 and (self._left[before] or self._released[before] == inf):
                return
            self._planned = max(self._planned, self._arrivals[step],
                                self._finish[before] if before >= 0 else 0.0)
            heappush(self._events, (self._planned, step, -1))
            self._unreleased += 1

    def _open(self, step: int, now: float) -> None:
        self._released[step] = self._finish[step] = now
        for number, missing in enumerate(self._missing[step]):
            if not missing:
                self._is_ready(step, number, now)
        if not self._left[step]:
            self._release()

    def _is_ready(self, step: int, stage: int, now: float) -> None:
        self._ready[step][stage] = now
        heappush(self._waiting, (step, stage))

    def _ended(self, step: int, stage: int, now: float) -> None:
        ended = self._steps[step].stages[stage]
        for name, share in ended.uses if ended.us else ():
            self._taken[name] -= share
        for number in self._later[step][stage]:
            self._missing[step][number] -= 1
            if not self._missing[step][number]:
                self._is_ready(step, number, now)
        self._left[step] -= 1
        self._finish[step] = now
        if not self._left[step]:
            self._release()

    def _begin(self, now: float) -> None:
        kept = []
        awaited: set[Hashable] = set()
        while self._waiting:
            step, number = where = heappop(self._waiting)
            stage = self._steps[step].stages[number]
            short = [name for name, share in stage.uses
                     if self._taken.get(name, 0.0) + share > _FULL]
            if short or not awaited.isdisjoint(stage.resources):
                awaited.update(short)
                kept.append(where)
                continue
            self._start[step][number] = now
            self._end[step][number] = now + stage.us
            if now > self._ready[step][number]:
                self._held[step][number] = max(
                    (self._last[name] for name in stage.resources if name in self._last),
                    key=lambda last: self._end[last[0]][last[1]])
            for name, share in stage.uses:
                self._last[name] = where
                self._busy[name] = self._busy.get(name, 0.0) + share * stage.us
                if stage.us:
                    self._taken[name] = self._taken.get(name, 0.0) + share
            if stage.us:
                heappush(self._events, (now + stage.us, step, number))
            else:  # its successors may start before later stages in the order
                self._ended(step, number, now)
        for where in kept:
            heappush(self._waiting, where)
