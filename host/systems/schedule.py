"""List scheduler of stages over resources that stages hold wholly or in part."""

from bisect import insort
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

import numpy as np

from host.systems.stage import Step

__all__ = ["Schedule", "schedule"]

_FULL = 1 + 1e-9
"""A whole resource, plus a tolerance for rounding errors in sums of shares."""


@dataclass(frozen=True)
class Schedule:
    """Result of :func:`schedule`; all times in microseconds.

    Members
    -------
    released: release time of each step, float64 ``[steps]``.
    ready, start, end: for each step, float64 ``[stages]``: end of the last predecessor, start, end.
    held: for each step and stage, the (step, stage) whose end it waited for on a resource; None if
        it started when ready.
    busy: service time of each resource, weighted by the share held.
    """

    released: np.ndarray
    ready: list[np.ndarray]
    start: list[np.ndarray]
    end: list[np.ndarray]
    held: list[list[tuple[int, int] | None]]
    busy: dict[Hashable, float]

    @property
    def finished(self) -> np.ndarray:
        """End of the last stage of each step, float64 ``[steps]``."""
        return np.array([end.max() if len(end) else released
                         for end, released in zip(self.end, self.released)])


def schedule(steps: Sequence[Step], in_flight: int = 1,
             arrivals: Sequence[float] | None = None) -> Schedule:
    """Schedule ``steps`` with at most ``in_flight`` steps at once.

    Step k is released when step k - ``in_flight`` has finished, but not before its arrival or
    before step k - 1. A ready stage starts when its shares of all its resources are free. The
    earliest step has priority, then the earliest stage. Resources are granted in time order: a
    stage never waits for a stage that cannot start yet. The free part of a resource that an earlier
    stage waits for is reserved for that stage; otherwise small shares could starve a large one.

    Raises ``ValueError`` for ``in_flight`` below 1, or arrivals that are too few or not ascending.
    """
    if in_flight < 1:
        raise ValueError(f"in_flight must be at least 1, not {in_flight!r}")
    if arrivals is not None and (len(arrivals) != len(steps)
                                 or any(b < a for a, b in pairwise(arrivals))):
        raise ValueError(f"arrivals must be {len(steps)} times in ascending order")
    return _Run(steps, in_flight, arrivals).execute()


class _Plan:
    """Stages of a step as the scheduler needs them; identical step objects share a plan.

    Members, for each stage
    -----------------------
    us: duration.
    uses: pairs of a resource's number and share.
    mask: bit mask of these resources.
    missing: number of predecessors.
    later: numbers of the successors.
    """

    def __init__(self, step: Step, numbers: dict[Hashable, int]):
        stages = step.stages
        self.us = [stage.us for stage in stages]
        self.uses = [[(numbers.setdefault(name, len(numbers)), share)
                      for name, share in zip(stage.resources, stage.shares)] for stage in stages]
        self.mask = [sum(1 << name for name, _ in uses) for uses in self.uses]
        self.missing = [len(stage.after) for stage in stages]
        self.later: list[list[int]] = [[] for _ in stages]
        for number, stage in enumerate(stages):
            for other in stage.after:
                self.later[other].append(number)


class _Run:
    """State of a schedule under construction."""

    def __init__(self, steps: Sequence[Step], in_flight: int, arrivals: Sequence[float] | None):
        self._in_flight = in_flight
        self._arrivals = arrivals or [0.0] * len(steps)
        self._numbers: dict[Hashable, int] = {}  # of the resources
        plans: dict[int, _Plan] = {}
        for step in steps:
            if id(step) not in plans:
                plans[id(step)] = _Plan(step, self._numbers)
        self._plans = [plans[id(step)] for step in steps]
        self._released = [inf] * len(steps)
        self._ready, self._start, self._end = (
            [[inf] * len(plan.us) for plan in self._plans] for _ in range(3))
        self._held: list[list[tuple[int, int] | None]] = [
            [None] * len(plan.us) for plan in self._plans]
        self._missing = [list(plan.missing) for plan in self._plans]
        self._left = [len(plan.us) for plan in self._plans]
        self._finish = [0.0] * len(steps)
        self._events: list[tuple[float, int, int]] = []  # time, step, ending stage; -1: released
        self._waiting: list[tuple[int, int]] = []        # ready stages, by step and number
        count = len(self._numbers)
        # For each resource: last stage to hold it, shares in use, service time.
        self._last: list[tuple[int, int] | None] = [None] * count
        self._taken, self._busy = [0.0] * count, [0.0] * count
        self._unreleased, self._planned = 0, 0.0

    def execute(self) -> Schedule:
        """Return the schedule."""
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
        ready, start, end = ([np.array(each) for each in times]
                             for times in (self._ready, self._start, self._end))
        busy = {name: self._busy[number] for name, number in self._numbers.items()}
        return Schedule(np.array(self._released), ready, start, end, self._held, busy)

    def _release(self) -> None:
        """Schedule the release of each further step whose release time is known."""
        while self._unreleased < len(self._plans):
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
        insort(self._waiting, (step, stage))

    def _ended(self, step: int, stage: int, now: float) -> None:
        plan, missing = self._plans[step], self._missing[step]
        if plan.us[stage]:
            for name, share in plan.uses[stage]:
                self._taken[name] -= share
        for number in plan.later[stage]:
            missing[number] -= 1
            if not missing[number]:
                self._is_ready(step, number, now)
        self._left[step] -= 1
        self._finish[step] = now
        if not self._left[step]:
            self._release()

    def _begin(self, now: float) -> None:
        waiting, taken, awaited, at = self._waiting, self._taken, 0, 0
        need: dict[int, float] = {}  # largest share of a resource that a skipped stage waits for
        # A stage of duration 0 may make later stages ready.
        while at < len(waiting):
            step, number = waiting[at]
            plan = self._plans[step]
            mask, uses = plan.mask[number], plan.uses[number]
            if awaited and mask and not mask & ~awaited:
                at += 1  # earlier stages wait for all its resources
                continue
            short = 0
            for name, share in uses:
                if taken[name] + share > _FULL:
                    short |= 1 << name
            if short or awaited & mask:
                awaited |= short
                at += 1
                for name, share in uses:
                    if share > need.get(name, 0.0):
                        need[name] = share
            else:
                del waiting[at]
                self._start_stage(step, number, now)
                for name, _ in uses:  # the rest may now be too small for a skipped stage
                    if name in need and taken[name] + need[name] > _FULL:
                        awaited |= 1 << name

    def _start_stage(self, step: int, number: int, now: float) -> None:
        plan, where = self._plans[step], (step, number)
        us, uses = plan.us[number], plan.uses[number]
        self._start[step][number] = now
        self._end[step][number] = now + us
        if now > self._ready[step][number]:
            self._held[step][number] = max(
                (last for last in (self._last[name] for name, _ in uses) if last is not None),
                key=lambda last: self._end[last[0]][last[1]])
        for name, share in uses:
            self._last[name] = where
            self._busy[name] += share * us
            if us:
                self._taken[name] += share
        if us:
            heappush(self._events, (now + us, step, number))
        else:  # its successors may start before later stages in the order
            self._ended(step, number, now)
