"""Conversion of action costs to stages of a step."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from host.devices.cost import Cost
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.systems.stage import Step

__all__ = ["charge", "longest_us", "operators", "slowest"]

_FIRST = frozenset({"cpu"})
"""Resources that an action needs at its start; it needs the others at its end."""


def slowest(costs: Iterable[Cost]) -> Cost:
    """Return the longest cost, for nodes that work in parallel and wait for each other."""
    return max(costs, key=lambda cost: cost.us, default=Cost())


def charge(step: Step, name: str, phase: str, cost: Cost, after: Sequence[int] = ()) -> int:
    """Add an action to ``step`` and return the number of its last stage.

    Its overhead comes first and has the phase ``overhead``. Each resource is held for its busy
    time: the host's ``cpu`` from the start on, the others up to the end.
    """
    spans = {resource: (0.0, busy) if resource in _FIRST else (cost.us - busy, cost.us)
             for resource, busy in cost.busy.items() if busy > 0}
    marks = sorted({0.0, cost.us, min(cost.overhead_us, cost.us),
                    *(min(max(mark, 0.0), cost.us) for span in spans.values() for mark in span)})
    at = tuple(after)
    last = None
    for begin, end in pairwise(marks):
        middle = (begin + end) / 2
        held = [resource for resource, span in spans.items() if span[0] < middle < span[1]]
        last = step.add(name, "overhead" if middle < cost.overhead_us else phase, end - begin,
                        *held, after=at)
        at = (last,)
    return step.add(name, phase, 0.0, after=at) if last is None else last


def operators(step: Step, gpu: GpuTime, parts: Sequence[tuple[str, str, Sequence[Operation]]],
              after: Sequence[int] = ()) -> int:
    """Add operators that one thread calls one after the other, or as one graph.

    ``parts``: name, phase and operators of each group. A group is charged the time it adds to the
    previous ones, so that calls of later groups hide behind earlier work. Returns the last stage.
    """
    done: list[Operation] = []
    before, at = Cost(), tuple(after)
    whole = gpu.run(*(operation for _, _, group in parts for operation in group))
    called = whole.busy.get("cpu", 0.0)
    for name, phase, group in parts:
        done += group
        cost = gpu.run(*done)
        us = max(0.0, cost.us - before.us)
        overhead = min(us, max(0.0, cost.overhead_us - before.overhead_us))
        # The host calls as early as it can, so its time is charged to the first groups.
        calls = min(us, called)
        called -= calls
        busy = {resource: min(us, busy - before.busy.get(resource, 0.0))
                for resource, busy in cost.busy.items() if resource != "cpu"}
        at = (charge(step, name, phase, Cost(us, overhead, busy | {"cpu": calls}), at),)
        before = cost
    return at[0] if at else charge(step, "nothing", "mlp", Cost())


def longest_us(step: Step) -> float:
    """Return the length of a step if no stage waits for a resource."""
    ends: list[float] = []
    for stage in step.stages:
        ends.append(stage.us + max((ends[other] for other in stage.after), default=0.0))
    return max(ends, default=0.0)
