"""Times of steps in flight, without a simulated order of stages.

A dispatcher that starts stages when resources are free has anomalies: a faster stage can change the
order and delay other stages (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969).
Here every time is a maximum of sums of durations, or grows with them (:func:`among_us`); a faster
stage or resource therefore never makes a time longer.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from host.systems.charge import earliest_ends
from host.systems.stage import Step

__all__ = ["COLLECTIVE", "SHARED", "Load", "Passage", "Schedule", "Use", "among_us", "busy_us",
           "kernels_us", "load_of", "passage_of", "schedule", "steady_us"]

_EXACT = 1 + 1e-12
"""Tolerance for rounding errors in sums of durations."""


SHARED = "gpu"
"""Resource on which stages of several steps run side by side and disturb each other."""

COLLECTIVE = "nccl"
"""Resource of stages that hold parts of `SHARED` but wait for the network. Other kernels do not
make this wait longer, and a waiting kernel does not slow kernels on other multiprocessors. Its
multiprocessors are occupied. No reading contains kernels beside a collective."""


class Use(NamedTuple):
    """A step's use of a resource, in microseconds.

    head: from the step's release to its first stage on the resource. work: service time, weighted
    by the shares. tail: from the end of its last stage on the resource to the step's end, at least.
    """

    resource: Hashable
    head: float
    work: float
    tail: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A step alone.

    Members: ``alone_us``, its length; ``uses``, of each resource; ``kernels_us``, the time in which
    kernels run; ``taken_us``, the work of its kernels, which delays kernels of other steps.
    """

    alone_us: float
    uses: tuple[Use, ...]
    kernels_us: float = 0.0
    taken_us: float = 0.0


@dataclass(frozen=True)
class Schedule:
    """Result of :func:`schedule`; all times in microseconds.

    Members
    -------
    released: release time of each step, float64 ``[steps]``.
    finished: end of each step, float64 ``[steps]``.
    busy: service time of each resource, weighted by the share held.
    """

    released: np.ndarray
    finished: np.ndarray
    busy: dict[Hashable, float]


def passage_of(step: Step) -> Passage:
    """Return the passage of a step alone.

    The step takes as long as its longest chain of stages. Stages of parallel chains share a
    resource in the best order that Jackson's rule allows: the resource serves the stage that the
    longest chain follows, with preemption. Each resource is considered alone, so the length is a
    lower bound of that of any order. Kernels with parts of a GPU fill its free
    multiprocessors; no kernel waits until all its multiprocessors are free at once.
    """
    stages, ends = step.stages, earliest_ends(step)
    rest = [0.0] * len(stages)  # the longest chain behind each stage
    for number in range(len(stages) - 1, -1, -1):
        stage = stages[number]
        left = rest[number] + stage.us
        for other in stage.after:
            if left > rest[other]:
                rest[other] = left
    jobs: dict[Hashable, list[tuple[float, float, float]]] = {}
    kernels = taken = 0.0
    for number, stage in enumerate(stages):
        us = stage.us
        if us:
            begin, left = ends[number] - us, rest[number]
            for resource, share in zip(stage.resources, stage.shares):
                job = begin, share * us, left
                if resource in jobs:
                    jobs[resource].append(job)
                else:
                    jobs[resource] = [job]
                if resource == SHARED and COLLECTIVE not in stage.resources:
                    kernels += us
                    taken += share * us
    alone, uses = max(ends, default=0.0), []
    for resource, each in jobs.items():
        each.sort()
        served = _served(each)
        if served > alone * _EXACT:
            alone = served
        uses.append(Use(resource, each[0][0], sum(job[1] for job in each),
                        min(job[2] for job in each)))
    return Passage(alone, tuple(uses), min(alone, kernels), taken)


def kernels_us(step: Step) -> float:
    """Return the total time of the kernels of a step, without collectives: kernels that kernels of
    other steps disturb."""
    return sum(stage.us for stage in step.stages
               if SHARED in stage.resources and COLLECTIVE not in stage.resources)


def among_us(alone_us: float, kernels_us: float, delay_us: float) -> float:
    """Return the length of a step among others whose kernels disturb its kernels.

    The other steps delay it by their work times the share of its length in which its kernels run:
    length = alone + delay * (length - rest) / length, where rest is the time without kernels.
    Schweitzer's approximation of a closed queueing network (E. D. Lazowska et al., "Quantitative
    System Performance", 1984, chapter 6), for equal steps and a queue that is empty when a step is
    alone.

    alone_us, kernels_us: see `Passage`. delay_us: work of the kernels of all other steps in flight.
    """
    rest = alone_us - kernels_us
    half = (alone_us + delay_us) / 2
    return half + sqrt(max(0.0, half * half - delay_us * rest))


def _served(jobs: Sequence[tuple[float, float, float]]) -> float:
    """Return the end of a step whose jobs (head, work, tail; ascending heads) share a resource.

    Jackson's preemptive schedule: the job with the longest tail goes first. Its end is the maximum,
    over all sets of jobs, of least head + work + least tail. 0 if no two jobs overlap.
    """
    before = -inf
    for head, work, _ in jobs:
        if head < before:
            break
        before = head + work
    else:
        return 0.0
    now, end, at, open_jobs = 0.0, 0.0, 0, []
    while open_jobs or at < len(jobs):
        if not open_jobs:
            now = max(now, jobs[at][0])
        while at < len(jobs) and jobs[at][0] <= now:
            heappush(open_jobs, (-jobs[at][2], jobs[at][1]))
            at += 1
        tail, work = open_jobs[0]
        free = jobs[at][0] - now if at < len(jobs) else inf
        if work <= free:
            heappop(open_jobs)
            now += work
            end = max(end, now - tail)
        else:
            heapreplace(open_jobs, (tail, work - free))
            now = jobs[at][0]
    return end


def busy_us(steps: Sequence[Step]) -> dict[Hashable, float]:
    """Return the total service time of each resource. A stage counts with its share."""
    busy: dict[Hashable, float] = {}
    for step in steps:
        for stage in step.stages:
            for name, share in zip(stage.resources, stage.shares):
                busy[name] = busy.get(name, 0.0) + share * stage.us
    return busy


def schedule(steps: Sequence[Step], in_flight: int = 1,
             arrivals: Sequence[float] | None = None) -> Schedule:
    """Schedule ``steps`` with at most ``in_flight`` steps at once.

    Step k is released when step k - ``in_flight`` has finished, but not before its arrival or
    before step k - 1. Each resource serves the steps in their order. A step ends when it has had
    its time among the steps in flight at its release (:func:`among_us`), and when each resource has
    served it and the steps before it. Its time is no longer than if it waited for the end of some
    of these steps.

    Raises ``ValueError`` for ``in_flight`` below 1, or arrivals that are too few or not ascending.
    """
    if in_flight < 1:
        raise ValueError(f"in_flight must be at least 1, not {in_flight!r}")
    if arrivals is not None and (len(arrivals) != len(steps)
                                 or any(b < a for a, b in pairwise(arrivals))):
        raise ValueError(f"arrivals must be {len(steps)} times in ascending order")
    found = _passages(steps)
    served: dict[Hashable, float] = {}
    released, finished, now = [], [], 0.0
    for number, step in enumerate(steps):
        if arrivals is not None:
            now = max(now, arrivals[number])
        if number >= in_flight:
            now = max(now, finished[number - in_flight])
        passage = found[id(step)]
        others = sorted(end for end in finished[-in_flight:] if end > now)
        end = min(at + among_us(passage.alone_us, passage.kernels_us,
                                (len(others) - ended) * passage.taken_us)
                  for ended, at in enumerate((now, *others)))
        for resource, head, work, tail in passage.uses:
            served[resource] = max(served.get(resource, 0.0), now + head) + work
            end = max(end, served[resource] + tail)
        released.append(now)
        finished.append(end)
    return Schedule(np.array(released), np.array(finished), busy_us(steps))


class Load(NamedTuple):
    """What equal rounds of steps need, at any number of steps in flight; microseconds per round.

    steps: steps of a round. alone, kernels, taken: sums of the members of `Passage`. busiest: time
    of the busiest resource.
    """

    steps: int
    alone: float
    kernels: float
    taken: float
    busiest: float

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> "Load":
        """Return the load of a round of steps with these passages."""
        busy: dict[Hashable, float] = {}
        alone = kernels = taken = 0.0
        for passage in passages:
            alone += passage.alone_us
            kernels += passage.kernels_us
            taken += passage.taken_us
            for use in passage.uses:
                busy[use.resource] = busy.get(use.resource, 0.0) + use.work
        return cls(len(passages), alone, kernels, taken, max(busy.values(), default=0.0))

    def interval_us(self, in_flight: int) -> float:
        """Return the mean interval, see :func:`steady_us`."""
        length = among_us(self.alone, self.kernels, (in_flight - 1) * self.taken)
        return max(length / in_flight, self.busiest) / self.steps


def load_of(steps: Sequence[Step]) -> Load:
    """Return the load of a round of steps."""
    found = _passages(steps)
    return Load.of([found[id(step)] for step in steps])


def steady_us(steps: Sequence[Step], in_flight: int) -> float:
    """Return the mean interval of ``steps``, repeated forever, in microseconds per step.

    The interval is the time of the busiest resource, or the mean length of a step among the others
    (:func:`among_us`) divided by ``in_flight``, whichever is longer. On an H100, each further step
    in flight makes a step longer by about the same time, from 4 to 16 steps
    (``host/measurements/gpu_h100_threads_readings.csv``); the busiest resource alone does not
    explain it. For other resources, the model assumes a static order of calls, as of a thread
    that waits for the oldest step and then launches the next, in which steps delay each other only
    at a saturated resource. A dispatcher that starts the oldest ready stage makes steps bunch, and
    needs more.
    """
    return load_of(steps).interval_us(in_flight)


def _passages(steps: Sequence[Step]) -> dict[int, Passage]:
    """Return the passage of each step by its ``id``; repeated steps are computed once."""
    return {key: passage_of(step) for key, step in {id(step): step for step in steps}.items()}
