"""Systems with chosen options, and the comparison of such choices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from host.systems import Step, Way, best
from sim.evaluation.fields import Flights
from sim.evaluation.forming import FILE_ORDER, Forming

__all__ = ["Built", "Choice", "cost_of", "fastest", "fastest_of", "floor_of", "interval_us",
           "lowest"]


def interval_us(steps: Sequence[Step], in_flight: int, per_graph: int = 1) -> float:
    """Return the mean time from one step's end to the next, in steady state.

    ``per_graph``: steps that the host thread launches as one graph and waits for together.
    ``in_flight`` counts steps.
    """
    return Way(steps).interval_us(in_flight, per_graph)


@dataclass(frozen=True)
class Built:
    """A point's system with its fastest options.

    Members: ``way``, the steps, one for each measured mini-batch; ``in_flight``, mini-batches in
    flight; ``per_graph``, mini-batches per graph; ``tuning``, chosen options, None for a system
    without options; ``notes``, in words; ``forming``, threads that form the mini-batches.
    """

    way: Way
    in_flight: int
    per_graph: int = 1
    tuning: Any = None
    notes: tuple[str, ...] = ()
    forming: Forming = FILE_ORDER

    @property
    def steps(self) -> list[Step]:
        """A step for each measured mini-batch."""
        return self.way.steps

    @cached_property
    def interval_us(self) -> float:
        """Time from one mini-batch to the next."""
        return max(self.forming.interval_us,
                   self.way.interval_us(self.in_flight, self.per_graph))


@dataclass(frozen=True)
class Choice:
    """Options to compare. Members: ``flights``, of which the fastest counts; ``option``."""

    flights: Flights
    option: Any


def fastest(flights: Flights, *ways: Way, tuning: Any = None,
            notes: tuple[str, ...] = ()) -> Built:
    """Return the fastest of several ways and flights. Ties: the fastest alone, then the least in
    flight and per graph."""
    return fastest_of([Built(way, *flight, tuning, notes) for flight in flights for way in ways])


def lowest(items: Sequence[Any], floor: Callable[[Any], tuple[float, ...]],
           cost: Callable[[Any], tuple[float, ...]]) -> Any:
    """Return the first item of the least cost. ``floor``: a cheaper lower bound of the cost."""
    found: tuple[tuple[float, ...], int] | None = None
    for bound, number in sorted((floor(item), number) for number, item in enumerate(items)):
        if found is not None and bound > found[0]:
            break
        own = cost(items[number]), number
        found = own if found is None else min(found, own)
    if found is None:
        raise ValueError("items must be at least one, not none")
    return items[found[1]]


def fastest_of(every: list[Built]) -> Built:
    """Return the fastest; of equally fast ones, the fastest alone."""
    if len(every) == 1:
        return every[0]
    # In the order of the cost: the first of equal ones.
    return best(every, floor_of, cost_of, cost_of)


def floor_of(built: Built) -> tuple[float, float]:
    """Return a lower bound of :func:`cost_of` that builds no graph."""
    return built.way.least_us(built.in_flight, built.per_graph), built.way.alone_us


def cost_of(built: Built) -> tuple[float, float]:
    """Return the interval, and the time of a step alone at it."""
    return built.interval_us, built.way.alone_us
