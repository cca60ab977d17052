"""Steps of a system that a search compares at several depths and numbers of steps per graph."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from host.systems.charge import longest_us
from host.systems.schedule import Load, Passage, Use, load_of, passage_of
from host.systems.shared_graph import in_graphs, rounds
from host.systems.stage import Step

__all__ = ["Way"]

_BELOW = 1 - 1e-9
"""Factor that keeps a lower bound below rounding errors in sums of durations."""


class Way:
    """Steps, and the intervals at which they repeat. Each step and graph is examined once.

    Parameter and member: ``steps``, one for each mini-batch.
    """

    def __init__(self, steps: Sequence[Step]):
        self.steps = list(steps)
        self._loads: dict[int, Load] = {}
        self._least: dict[int, Load] = {}

    def interval_us(self, in_flight: int, per_graph: int = 1) -> float:
        """Return the mean time from one step's end to the next, in steady state.

        ``in_flight``: steps in flight. ``per_graph``: steps that the host thread launches as one
        graph and waits for together.
        """
        if per_graph not in self._loads:
            self._loads[per_graph] = load_of(in_graphs(self.steps, per_graph))
        return self._loads[per_graph].interval_us(in_flight // per_graph) / per_graph

    def least_us(self, in_flight: int, per_graph: int = 1) -> float:
        """Return a lower bound of :meth:`interval_us` that requires no graph."""
        if per_graph not in self._least:
            self._least[per_graph] = self._least_load(per_graph)
        return _BELOW * self._least[per_graph].interval_us(in_flight // per_graph) / per_graph

    @cached_property
    def alone_us(self) -> float:
        """Mean time of a step alone, without waits for resources."""
        return fmean(map(longest_us, self.steps))

    @cached_property
    def _parts(self) -> dict[int, "_Part"]:
        """What a step adds to a graph, by the ``id`` of the step."""
        return {id(step): _Part.of(step) for step in self.steps}

    def _least_load(self, per_graph: int) -> Load:
        return Load.of([_least_passage([self._parts[id(step)] for step in steps])
                        for steps in rounds(self.steps, per_graph)])


class _Part(NamedTuple):
    """A step as a branch of a graph.

    passage: the step alone. calls: microseconds of each call that branches share. called: work of
    these calls on each resource. more: their further work for each further branch.
    """

    passage: Passage
    calls: tuple[float, ...]
    called: dict[Hashable, float]
    more: dict[Hashable, float]

    @classmethod
    def of(cls, step: Step) -> "_Part":
        called: dict[Hashable, float] = {}
        more: dict[Hashable, float] = {}
        for number in sorted(step.calls):
            stage = step.stages[number]
            for resource, share in zip(stage.resources, stage.shares):
                called[resource] = called.get(resource, 0.0) + share * stage.us
                more[resource] = more.get(resource, 0.0) + share * step.calls[number]
        return cls(passage_of(step), tuple(step.stages[number].us for number in sorted(step.calls)),
                   called, more)


    def times(self, count: int) -> Passage:
        """Return lower bounds of the passage of a graph with ``count`` such branches."""
        passage = self.passage
        alone, uses = passage.alone_us, []
        for resource, head, own, tail in passage.uses:
            us = own + (count - 1) * max(0.0, own - self.called.get(
                resource, 0.0) + self.more.get(resource, 0.0))
            alone = max(alone, head + us + tail)
            uses.append(Use(resource, 0.0, us, 0.0))
        return Passage(alone, tuple(uses), min(alone, count * passage.kernels_us),
                       count * passage.taken_us)


def _least_passage(parts: Sequence[_Part]) -> Passage:
    """Return lower bounds of the passage of a graph with branches ``parts``.

    A graph has the work of its branches, and the calls of the first branch once. It takes at least
    as long as each branch, and as the work on each resource between the least head and tail. A
    branch is shorter in a graph if the first branch has shorter calls.
    """
    first = parts[0]
    if all(part is first for part in parts):
        return first.times(len(parts))
    alone, work, ends = 0.0, {}, {}
    for number, part in enumerate(parts):
        less = sum(max(0.0, us - other) for us, other in zip(part.calls, first.calls))
        alone = max(alone, part.passage.alone_us - less)
        for use in part.passage.uses:
            head, tail = max(0.0, use.head - less), max(0.0, use.tail - less)
            if use.resource in ends:
                before = ends[use.resource]
                head, tail = min(before[0], head), min(before[1], tail)
            ends[use.resource] = head, tail
            own = use.work if number == 0 else use.work - part.called.get(
                use.resource, 0.0) + part.more.get(use.resource, 0.0)
            work[use.resource] = work.get(use.resource, 0.0) + max(0.0, own)
    for resource, us in work.items():
        head, tail = ends[resource]
        alone = max(alone, head + us + tail)
    return Passage(alone, tuple(Use(resource, 0.0, us, 0.0) for resource, us in work.items()), min(
        alone, sum(part.passage.kernels_us for part in parts)),
        sum(part.passage.taken_us for part in parts))
