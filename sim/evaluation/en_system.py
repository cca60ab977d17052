"""EN at a point: the options that it is fastest with, its steps and its NICs."""

from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil

from host.systems import (
    Devices,
    EnTuning,
    NicTimes,
    Step,
    StepOptions,
    best,
    en,
    en_tunings,
    fixed_of,
)
from host.wire.indices import MOST_INDICES
from sim.evaluation.en_nic import (
    check_seen,
    deliveries,
    en_nic,
    least_times,
    nic_devices,
    nic_point,
)
from sim.evaluation.nic import NicPart
from sim.evaluation.nic_updates import with_updates
from sim.evaluation.point import Flights, Point
from sim.evaluation.steps import Built, alone_us, fastest, sums
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, copied_all
from sim.evaluation.workloads import Workloads

__all__ = ["EnSystem", "en_built", "en_system"]


@dataclass(frozen=True)
class EnSystem:
    """Members: ``built``, the steps; ``nic``, their NICs; ``tuning``, what was chosen."""

    built: Built
    nic: NicPart
    tuning: EnTuning


def en_system(point: Point, trace: Trace, work: Workloads, devices: Devices,
              runs: Store | None = None, all_reduce: bool = True) -> EnSystem:
    """Return EN with the options, and the mini-batches in flight, of the shortest interval.

    As for bl-tuned, the mini-batches between which all others lie stand for all while options are
    compared, and all decide between the options that are best where each mini-batch is a graph and
    those that are best otherwise. NICs are run only for options that could be faster than the best
    so far if nothing but a cycle a slot and a beat held NICs up, in fidelity ``model``, which
    follows RTL to the cycle; those of the chosen options in the point's. Each different vector is
    delivered once only where every share has an index for each slot, unless it must be. NICs read
    rows only where they see all tables of theirs; ``ValueError`` if they must and do not.
    """
    options = StepOptions(point.workload == "training", all_reduce)
    search = _Search(replace(point, fidelity="model"), trace, work, devices, options, runs)
    every = [each for each in en_tunings(options.training, fixed_of(point.en))
             if not copied_all(trace, each.copied_rows)]
    every = [each for each in every if search.fits(each)] or every
    if not any(map(search.sees, every)):
        check_seen(point, trace, devices, every[0])
    every = [each for each in every if search.sees(each)]
    found = [best(every, partial(search.least, flights), partial(search.cost, flights))
             for flights in point.sets_of_flights]
    chosen = min((search.system(tuning) for tuning in dict.fromkeys(found)),
                 key=lambda each: round(each.built.interval_us, 6))
    return chosen if point.fidelity == "model" else _Search(
        point, trace, work, devices, options, runs).system(chosen.tuning)


def en_built(point: Point, trace: Trace, work: Workloads, devices: Devices, tuning: EnTuning,
             times: list[NicTimes]) -> Built:
    """Return EN with one tuning, whose NICs take ``times`` for each measured mini-batch."""
    options = StepOptions(point.workload == "training")
    search = _Search(point, trace, work, devices, options, None)
    return fastest(point.flights, *search.ways(tuning, times))


class _Search:
    """What EN's options cost at a point."""

    def __init__(self, point: Point, trace: Trace, work: Workloads, devices: Devices,
                 options: StepOptions, runs: Store | None):
        self._point, self._trace, self._work = point, trace, work
        self._devices, self._options, self._runs = devices, options, runs
        self.nic = cache(self._nic)
        self._delivered = cache(lambda rows: deliveries(point, trace, rows))

    def _nic(self, tuning: EnTuning) -> NicPart:
        point, trace, devices = self._point, self._trace, self._devices
        part = en_nic(point, trace, devices, tuning, self._runs)
        if self._options.training:
            part = with_updates(nic_point(point, devices, tuning), trace,
                                nic_devices(devices, tuning), self._work, part)
        return part

    def fits(self, tuning: EnTuning) -> bool:
        """Return whether there are as many indices as slots, where slots have them."""
        return tuning.deliver != "unique" or all(
            of.slots <= MOST_INDICES for of in self._delivered(tuning.copied_rows))

    def sees(self, tuning: EnTuning) -> bool:
        """Return whether NICs see all rows that they read."""
        try:
            check_seen(self._point, self._trace, self._devices, tuning)
        except ValueError:
            return False
        return True

    def system(self, tuning: EnTuning) -> EnSystem:
        """Return EN with these options."""
        nic = self.nic(tuning)
        return EnSystem(fastest(self._point.flights, *self.ways(tuning, nic.times), notes=(
            f"EN is fastest with {tuning.in_words()}",)), nic, tuning)

    def least(self, flights: Flights, tuning: EnTuning) -> tuple[float, float]:
        """Return a bound below the cost: what it is if nothing but a cycle a slot and a beat holds
        NICs up."""
        share = ceil(self._trace.mini_batch / self._point.nodes)
        times = [least_times(self._trace.model, tuning, of, share)
                 for of in self._delivered(tuning.copied_rows)]
        return min((Built(steps, *flight).least_us, alone_us(steps))
                   for steps in self.ways(tuning, times, few=True) for flight in flights)

    def cost(self, flights: Flights, tuning: EnTuning) -> tuple[float, float]:
        """Return the shortest interval, and how long a step then takes alone."""
        found = fastest(flights, *self.ways(tuning, self.nic(tuning).times, few=True))
        return found.interval_us, alone_us(found.steps)

    def ways(self, tuning: EnTuning, times: list[NicTimes], few: bool = False) -> list[list[Step]]:
        """Return the steps for each way to sum the gradients of the MLPs; of ``few`` mini-batches.
        """
        numbers = self._work.extremes if few else range(len(times))
        plain = self._work.plain
        own = self._delivered(tuning.copied_rows)
        return [[en(plain[n], self._devices, way, times[n], own[n], tuning) for n in numbers]
                for way in sums(self._options, self._devices)]
