"""Conversion of action costs to stages of a step."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from host.devices.cost import Cost
from host.systems.stage import Part, Step

__all__ = ["charge", "earliest_ends", "longest_us"]

_FIRST = frozenset({"cpu"})
"""Resources that an action holds from its start; the other resources are held until its end."""


def charge(step: Step, name: str, phase: str, cost: Cost, after: Sequence[int] = (),
           shares: Mapping[str, float] | None = None) -> int:
    """Add an action to ``step`` and return the number of its last stage.

    The overhead precedes the work and has the phase ``overhead``. The action holds ``cpu`` from its
    start, and every other resource until its end, each for its busy time.

    shares: share of a resource by name; the default is 1.
    """
    shares = shares or {}
    spans = {resource: (0.0, busy) if resource in _FIRST else (cost.us - busy, cost.us)
             for resource, busy in cost.busy.items() if busy > 0}
    marks = sorted({0.0, cost.us, min(cost.overhead_us, cost.us),
                    *(min(max(mark, 0.0), cost.us) for span in spans.values() for mark in span)})
    at = tuple(after)
    last = None
    for begin, end in pairwise(marks):
        middle = (begin + end) / 2
        held = [Part(resource, shares.get(resource, 1.0)) for resource, span in spans.items()
                if span[0] < middle < span[1]]
        last = step.add(name, "overhead" if middle < cost.overhead_us else phase, end - begin,
                        *held, after=at)
        at = (last,)
    return step.add(name, phase, 0.0, after=at) if last is None else last


def earliest_ends(step: Step) -> list[float]:
    """Return the end of each stage of a step in which no stage waits for a resource."""
    ends: list[float] = []
    for stage in step.stages:
        begin = 0.0
        for other in stage.after:
            if ends[other] > begin:
                begin = ends[other]
        ends.append(stage.us + begin)
    return ends


def longest_us(step: Step) -> float:
    """Return the length of a step in which no stage waits for a resource."""
    return max(earliest_ends(step), default=0.0)
