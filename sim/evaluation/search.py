"""Search for a system's fastest options at a point."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from statistics import fmean as mean
from typing import Any

from host.systems import (
    Devices,
    Step,
    StepOptions,
    best,
    in_graphs,
    least_interval_us,
    steady_us,
)
from host.systems.charge import longest_us
from sim.evaluation.fields import Fields, Flights, devices_of
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, plan_of, trace_of
from sim.evaluation.workloads import Workloads, workloads

__all__ = ["Built", "Choice", "Plain", "Search", "Site", "alone_us", "fastest", "interval_us",
           "sums"]


def interval_us(steps: Sequence[Step], in_flight: int, per_graph: int = 1) -> float:
    """Return the mean time from one step's end to the next, in steady state.

    ``per_graph``: steps that the host thread launches as one graph and waits for together.
    ``in_flight`` counts steps.
    """
    return steady_us(in_graphs(steps, per_graph), in_flight // per_graph) / per_graph


@dataclass(frozen=True)
class Built:
    """A point's system with its fastest options.

    Members: ``steps``, one for each measured mini-batch; ``in_flight``, mini-batches in flight;
    ``per_graph``, mini-batches per graph; ``tuning``, chosen options, None for a system without
    options; ``notes``, in words.
    """

    steps: list[Step]
    in_flight: int
    per_graph: int = 1
    tuning: Any = None
    notes: tuple[str, ...] = ()

    @cached_property
    def interval_us(self) -> float:
        """Time from one mini-batch to the next."""
        return interval_us(self.steps, self.in_flight, self.per_graph)

    @cached_property
    def least_us(self) -> float:
        """Lower bound of the interval, cheaper to compute."""
        return least_interval_us(in_graphs(self.steps, self.per_graph),
                                 self.in_flight // self.per_graph) / self.per_graph


@dataclass(frozen=True, eq=False)
class Site:
    """A point with all inputs of its system.

    point, trace: the point and its trace. work: work of each mini-batch. devices: devices of a
        node. runs: store of NIC runs, or None.
    greedy: whether EN's options are improved step by step instead of compared all.
    """

    point: Fields
    trace: Trace
    work: Workloads
    devices: Devices
    runs: Store | None = None
    greedy: bool = False

    @classmethod
    def of(cls, point: Fields, runs: Store | None = None, trace: Trace | None = None,
           greedy: bool = False) -> "Site":
        """Return the site of a point; ``trace``: replaces the point's own trace."""
        found = trace or trace_of(point.workload)
        return cls(point, found, workloads(found, plan_of(point, found)),
                   devices_of(point.cluster), runs, greedy)

    @property
    def training(self) -> bool:
        """Whether the point trains."""
        return self.point.workload.training


@dataclass(frozen=True)
class Choice:
    """Options to compare. Members: ``flights``, of which the fastest counts; ``option``."""

    flights: Flights
    option: Any


class Search(ABC):
    """Options of a system at a site, and the search for the fastest.

    The extreme mini-batches represent all mini-batches while options are compared. The two
    finalists (the best with one mini-batch per graph, and the best overall) are then compared on
    all mini-batches.

    Parameters: ``site``; ``all_reduce``, whether training sums the MLPs' gradients over the nodes.
    """

    def __init__(self, site: Site, all_reduce: bool = True):
        self.site = site
        self.step_options = StepOptions(site.training, all_reduce)
        self._bound, self._cost = cache(self._bound_of), cache(self._cost_of)

    @abstractmethod
    def ways(self, option: Any, few: bool = False) -> list[list[Step]]:
        """Return the steps of all mini-batches, or of ``few``, for each way to build them with
        ``option``."""

    def options(self, near: Any = None) -> Sequence[Any]:
        """Return the options; ``near``: only options similar to it."""
        return (None,)

    def least_ways(self, option: Any) -> list[list[Step]]:
        """Return steps of few mini-batches that are a lower bound of :meth:`ways`."""
        return self.ways(option, few=True)

    def choices(self, flights: Flights, near: Any = None) -> Iterable[Choice]:
        """Return the choices to compare."""
        return [Choice(flights, option) for option in self.options(near)]

    def in_words(self, option: Any) -> tuple[str, ...]:
        """Return notes on ``option``."""
        return ()

    def whole(self, choice: Choice) -> Built:
        """Return the system with a choice, over all mini-batches."""
        return fastest(choice.flights, *self.ways(choice.option), tuning=choice.option,
                       notes=self.in_words(choice.option))

    def pick(self, found: list[Built]) -> Built:
        """Return the fastest of the finalists."""
        return _best(found)

    def best(self, near: Any = None) -> Built:
        """Return the system with its best options. ``near``: start of a local search, which ends
        when no similar option is better; None compares all options."""
        point = self.site.point
        if self.options() == (None,):
            return self.whole(Choice(point.flights, None))
        found = [self._round(flights, near) for flights in point.sets_of_flights]
        return self.pick([self.whole(choice) for choice in dict.fromkeys(found)])

    def _round(self, flights: Flights, near: Any) -> Choice:
        chosen = best(self.choices(flights, near), self._bound, self._cost)
        return chosen if near in (None, chosen.option) else self._round(flights, chosen.option)

    def _bound_of(self, choice: Choice) -> tuple[float, float]:
        """Return a lower bound of the cost of a choice."""
        return min((Built(steps, *flight).least_us, alone_us(steps))
                   for steps in self.least_ways(choice.option) for flight in choice.flights)

    def _cost_of(self, choice: Choice) -> tuple[float, float]:
        """Return the shortest interval, and the time of a step alone at it."""
        found = fastest(choice.flights, *self.ways(choice.option, few=True))
        return found.interval_us, alone_us(found.steps)


class Plain(Search):
    """Search of a system without options: only flights, and ways to build it, are compared.

    Parameters: ``site``, ``all_reduce``; ``build``, returns the steps of all mini-batches for each
    way; ``notes``, in words.
    """

    def __init__(self, site: Site, all_reduce: bool,
                 build: Callable[[StepOptions], list[list[Step]]], notes: tuple[str, ...] = ()):
        super().__init__(site, all_reduce)
        self._build, self._notes = build, notes

    def ways(self, option: None, few: bool = False) -> list[list[Step]]:
        """Return the result of ``build``."""
        return self._build(self.step_options)

    def in_words(self, option: None) -> tuple[str, ...]:
        """Return the notes."""
        return self._notes


def sums(options: StepOptions, devices: Devices) -> Iterator[StepOptions]:
    """Yield the ways to sum the gradients of the MLPs."""
    off_or_on = (False, True)
    for buckets, nccl in product(off_or_on if options.training else (False,),
                                 off_or_on if options.training and
                                 devices.software.collective != "nccl" else (False,)):
        yield replace(options, buckets=buckets, nccl=nccl)


def fastest(flights: Flights, *ways: list[Step], tuning: Any = None,
            notes: tuple[str, ...] = ()) -> Built:
    """Return the fastest of several ways and flights. Ties: the fastest alone, then the least in
    flight and per graph."""
    return _best([Built(steps, *flight, tuning, notes) for flight in flights for steps in ways])


def _best(every: list[Built]) -> Built:
    """Return the fastest; of equally fast ones, the fastest alone."""
    if len(every) == 1:
        return every[0]
    return best(every, lambda each: (each.least_us, alone_us(each.steps)),
                lambda each: (each.interval_us, alone_us(each.steps)))


def alone_us(steps: list[Step]) -> float:
    """Return the mean time of a step alone, the tie-breaker of equally fast ways."""
    return mean(longest_us(step) for step in steps)
