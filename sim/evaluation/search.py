"""Search for a system's fastest options at a point."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, ClassVar

from host.systems import (
    Devices,
    HostTuning,
    Step,
    StepOptions,
    Variants,
    Way,
    best,
    every,
    fixed_of,
    near,
    open_variants,
    start_of,
)
from sim.evaluation.built import Built, Choice, cost_of, fastest, fastest_of, floor_of, lowest
from sim.evaluation.fields import Flights
from sim.evaluation.site import Site

__all__ = ["CLOSE", "GAIN", "Plain", "Search", "sums"]

GAIN = 1.001
"""Gain below which a system's other NICs do not run."""

CLOSE = 1.25
"""Interval of a group, or of a placement, that is still searched, relative to the best."""


class Search(ABC):
    """Options of a system at a site, and the local search for the fastest.

    A search begins at the best options of each group (:meth:`apart`). A round compares the options
    that differ in an alternative, with each flight; rounds end when none is faster. From the groups
    that come close to the best, further rounds also compare the options that differ in ``changes``
    alternatives, with the same depth. The bound of :meth:`least_ways`, if it is cheaper to compute,
    excludes most options.

    The extreme mini-batches represent all mini-batches while options are compared. The finalists
    (the best of each group of :meth:`apart`, with one mini-batch per graph and overall) are then
    compared on all mini-batches.

    Members
    -------
    kind: class of the options, None for a system without options.
    changes: most alternatives that change at once.
    coarse: members whose combinations are compared first.

    Parameters: ``site``; ``all_reduce``, whether training sums the MLPs' gradients over the nodes.
    """

    kind: ClassVar[type[HostTuning] | None] = None
    changes: ClassVar[int] = 2
    coarse: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, site: Site, all_reduce: bool = True):
        self.site = site
        self.step_options = StepOptions(site.training, all_reduce)
        self._bound, self._cost = cache(self._bound_of), cache(self._cost_of)
        self._few, self._least = cache(self._few_of), cache(self._least_of)
        self.fixed = fixed_of(self.kind, site.point.system.fixed) if self.kind else {}
        if self.fixed.get("key_bytes", 8) < site.key_bytes:
            raise ValueError("key_bytes must be 8: the tables have more than 2^32 rows")
        self.variants = open_variants(self.all_variants(), self.fixed)

    @abstractmethod
    def ways(self, option: Any, few: bool = False) -> list[list[Step]]:
        """Return the steps of all mini-batches, or of ``few``, for each way to build them with
        ``option``."""

    def all_variants(self) -> tuple[Variants, ...]:
        """Return the alternatives of each option that are searched."""
        return ()

    def start(self) -> Any:
        """Return the option at which the search begins."""
        if self.kind is None:
            return None
        return start_of(self.kind(**self.fixed), self.variants, self.site.training)

    def near(self, option: Any, changes: int = 1) -> Sequence[Any]:
        """Return ``option``, and the similar options that a round compares with it: the options
        with the fewest threads and communicators first, which win ties."""
        if option is None:
            return (None,)
        return sorted((each for each in near(option, self.variants, changes)
                       if each.possible(self.site.training)),
                      key=lambda each: each.threads + each.communicators)

    def seeds(self) -> Sequence[Any]:
        """Return the options that are compared first."""
        option = self.start()
        own = [each for each in self.variants if each and self.coarse.issuperset(each[0])]
        return every(option, own, self.site.training) if own else (option,)

    def apart(self, option: Any) -> Any:
        """Return the group of an option; the search finds the best of each group. A further group
        cannot make the result worse."""
        return None

    def least_ways(self, option: Any) -> list[list[Step]] | None:
        """Return steps of few mini-batches that are a lower bound of :meth:`ways`, None if they are
        not cheaper to build."""
        return None

    def allows(self, option: Any, depth: int, per_graph: int) -> bool:
        """Return whether an option differs from the others at a flight."""
        return True

    def in_words(self, option: Any) -> tuple[str, ...]:
        """Return notes on ``option``."""
        if option is None:
            return ()
        return (f"fastest with {option.in_words()}",)

    def whole(self, choice: Choice) -> Built:
        """Return the system with a choice, over all mini-batches."""
        found = fastest(choice.flights, *map(Way, self.ways(choice.option)), tuning=choice.option,
                        notes=self.in_words(choice.option))
        return replace(found, forming=self.site.forming)

    def pick(self, found: list[Built]) -> Built:
        """Return the fastest of the finalists."""
        return fastest_of(found)

    def best(self) -> Built:
        """Return the system with its best options."""
        point, seeds = self.site.point, self.seeds()
        if len(seeds) == len(self.near(seeds[0])) == 1:
            return self.whole(Choice(point.flights, seeds[0]))
        found: list[Choice] = []
        for flights in point.sets_of_flights:
            groups: dict[Any, list[Any]] = {}
            for each in (*(each.option for each in found), *seeds):
                groups.setdefault(self.apart(each), []).append(each)
            found += [self._climb(flights, group, 1) for group in groups.values()]
            most = CLOSE * min(self._cost(each)[0] for each in found)
            found += [self._climb(flights, [each.option], self.changes)
                      for each in dict.fromkeys(found) if self._cost(each)[0] <= most]
        return self.pick([self.whole(choice) for choice in dict.fromkeys(found)])

    def beside_us(self, built: Built) -> float:
        """Return the shortest interval at this site, with the flight of a system at another site,
        of its options and of similar ones that copy the same tables."""
        rows = getattr(built.tuning, "copied_rows", None)
        near = [each for each in self.near(built.tuning)
                if getattr(each, "copied_rows", None) == rows]
        choices = self._choices(((built.in_flight, built.per_graph),), near)
        return self._cost(best(choices, *self.costs))[0]

    def _climb(self, flights: Flights, options: Sequence[Any], changes: int) -> Choice:
        """Return the best of ``options`` of a group, improved until no option of the group is
        faster: with any flight in one alternative, with the same depth in ``changes``."""
        before, group, choices = None, self.apart(options[0]), self._choices(flights, options)
        while True:
            chosen = best([each for each in choices if self.apart(each.option) == group],
                          *self.costs)
            # Bounds that leave out small gains may exclude the option before.
            if before is not None and (
                    chosen == before or self._cost(before) < self._cost(chosen)):
                return before
            before, ((depth, _),) = chosen, chosen.flights
            same = tuple(flight for flight in flights if flight[0] == depth)
            choices = [*self._choices(flights, self.near(chosen.option)),
                       *self._choices(same, self.near(chosen.option, changes))]

    @property
    def costs(self) -> tuple[Callable[[Choice], tuple[float, float]], ...]:
        """The lower bounds of a choice's cost, the cheapest to compute first, and the cost."""
        return self._floor, self._bound, self._cost

    def _choices(self, flights: Flights, options: Sequence[Any]) -> list[Choice]:
        return [Choice((flight,), each) for each in options for flight in flights
                if self.allows(each, *flight)]

    def _few_of(self, option: Any) -> list[Way]:
        return [Way(steps) for steps in self.ways(option, few=True)]

    def _least_of(self, option: Any) -> list[Way]:
        found = self.least_ways(option)
        return self._few(option) if found is None else [Way(steps) for steps in found]

    def _floor(self, choice: Choice) -> tuple[float, float]:
        """Return a lower bound of :meth:`_bound_of` that builds no graph."""
        return min((way.least_us(*flight), way.alone_us)
                   for way in self._least(choice.option) for flight in choice.flights)

    def _bound_of(self, choice: Choice) -> tuple[float, float]:
        """Return a lower bound of the cost of a choice."""
        return cost_of(lowest([Built(way, *flight) for way in self._least(choice.option)
                               for flight in choice.flights], floor_of, cost_of))

    def _cost_of(self, choice: Choice) -> tuple[float, float]:
        """Return the shortest interval, and the time of a step alone at it."""
        return cost_of(fastest(choice.flights, *self._few(choice.option)))


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
