"""Time from one step to the next in steady state."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import NamedTuple

from host.systems.schedule import passage_of
from host.systems.stage import Step

__all__ = ["steady_us"]


def steady_us(steps: Sequence[Step], in_flight: int) -> float:
    """Return the mean interval of ``steps``, repeated forever, in microseconds per step.

    The interval T is the least time with two properties:

    - No resource is busy for more than T per step.
    - A step, lengthened by its waits, ends within T times the steps in flight.

    A stage meets other steps in flight at a random time of their interval. Stage j of another step
    holds the resource with probability j.us / T, and for half of j.us on average. A share of a
    resource waits only for the part that stage j does not leave free. The waits of a step on a
    resource are limited to the work of the other steps on it. Fewer steps than ``in_flight`` are in
    flight if that is faster. With one step in flight the interval is the step alone.

    T is the root of a function that increases with every duration and share, and decreases with
    ``in_flight``; it is therefore monotone.
    """
    weights = Counter(map(id, steps))
    parts = [(weights[key] / len(steps), _Waiting(step))
             for key, step in {id(step): step for step in steps}.items()]
    busy: dict[Hashable, float] = {}
    for weight, part in parts:
        for use in part.passage.uses:
            busy[use.resource] = busy.get(use.resource, 0.0) + weight * use.work
    floor = max(busy.values(), default=0.0)
    alone = sum(weight * part.passage.alone_us for weight, part in parts)
    best = inf
    for depth in range(in_flight, 0, -1):
        least = max(floor, alone / depth)
        if least >= best:
            break
        best = min(best, _root(parts, depth, least))
    return best


def _root(parts: Sequence[tuple[float, "_Waiting"]], depth: int, least: float) -> float:
    """Return the least T from ``least`` at which the steps end within ``depth`` times T."""
    def late(interval: float) -> float:
        """Return the time by which the mean step exceeds its limit; it falls with the interval."""
        return sum(weight * part.length_us(interval, depth)
                   for weight, part in parts) - depth * interval

    over = late(least) if depth > 1 else 0.0
    if over <= 1e-9 * least:
        return least
    low, high = least, least + over / depth
    under = late(high)
    while high - low > 1e-9 * high:  # regula falsi, Illinois variant
        middle = min(max((low * under - high * over) / (under - over), low), high)
        if not low < middle < high:
            break
        value = late(middle)
        if value > 0:
            low, over, under = middle, value, under / 2
        else:
            high, under, over = middle, value, over / 2
    return high


class _Wait(NamedTuple):
    """Wait of a stage for a resource: ``square`` / T, at most ``most`` per step in flight."""

    square: float
    most: float


class _Waiting:
    """A step whose stages wait for other steps. Members: ``passage``."""

    def __init__(self, step: Step):
        self.passage, self._step = passage_of(step), step

    @cached_property
    def _stages(self) -> list[tuple[float, tuple[int, ...], tuple[_Wait, ...]]]:
        waits = _waits(self._step)
        return [(stage.us, stage.after, waits.get(number, ()))
                for number, stage in enumerate(self._step.stages)]

    def length_us(self, interval: float, depth: int) -> float:
        """Return the length of the step with ``depth`` steps in flight, at an interval."""
        ends: list[float] = []
        for us, after, waits in self._stages:
            if waits:
                us += (1 - 1 / depth) * max(min(square / interval, depth * most)
                                            for square, most in waits)
            ends.append(us + max((ends[other] for other in after), default=0.0))
        return max(self.passage.alone_us, *ends, 0.0)


def _waits(step: Step) -> dict[int, tuple[_Wait, ...]]:
    """Return the waits of each stage that meets other stages on its resources."""
    users: dict[Hashable, list[tuple[float, float, int]]] = {}
    for number, stage in enumerate(step.stages):
        if stage.us:
            for resource, share in zip(stage.resources, stage.shares):
                users.setdefault(resource, []).append((share, stage.us, number))
    found: dict[int, tuple[_Wait, ...]] = {}
    for each in users.values():
        if len(each) > 1:
            for number, square in _squares(each):
                most = sum(share * us for share, us, _ in each) / len(each)
                found[number] = (*found.get(number, ()), _Wait(square, most))
    return found


def _squares(users: list[tuple[float, float, int]]) -> Iterator[tuple[int, float]]:
    """Yield each of a resource's stages (share, us, number) that other stages delay, with its wait
    times the interval: the sum of us^2 / 2 over the others, weighted by the part that is missing.
    """
    users.sort()
    shares = [share for share, _, _ in users]
    # Sums over the stages from a place on.
    squares = [*accumulate((us * us for _, us, _ in reversed(users)), initial=0.0)][::-1]
    parts = [*accumulate((share * us * us for share, us, _ in reversed(users)), initial=0.0)][::-1]
    for share, us, number in users:
        at = bisect_right(shares, 1 - share)
        own = us * us * max(0.0, 2 * share - 1)
        missing = parts[at] - (1 - share) * squares[at] - own
        if missing > 1e-12 * us * us:
            yield number, missing / share / 2
