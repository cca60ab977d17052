"""The system of a point: what it chooses, and its steps for each measured mini-batch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from statistics import fmean as mean

from host.systems import (
    Devices,
    Step,
    StepOptions,
    Tuning,
    all_on_nic,
    best,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    in_graphs,
    least_interval_us,
    smartnic,
    tunings,
)
from host.systems.charge import longest_us
from sim.evaluation.nic import NicPart
from sim.evaluation.point import Flights, Point
from sim.evaluation.systems import EN, parts_of
from sim.evaluation.timing import interval_us
from sim.evaluation.workloads import Workloads

__all__ = ["Built", "alone_us", "built", "fastest", "sums"]


@dataclass(frozen=True)
class Built:
    """A point's system, with the options that it is fastest with.

    Members: ``steps``, one for each measured mini-batch; ``in_flight``, how many are under way;
    ``per_graph``, how many of them are in a graph; ``tuning``, of bl-tuned; ``notes``, in words.
    """

    steps: list[Step]
    in_flight: int
    per_graph: int = 1
    tuning: Tuning | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def interval_us(self) -> float:
        """The time from one mini-batch to the next."""
        return interval_us(self.steps, self.in_flight, self.per_graph)

    @cached_property
    def least_us(self) -> float:
        """A bound below the interval, which takes less to compute."""
        return least_interval_us(in_graphs(self.steps, self.per_graph),
                                 self.in_flight // self.per_graph) / self.per_graph


def built(point: Point, work: Workloads, devices: Devices, nic: NicPart | None,
          all_reduce: bool = True, near: Tuning | None = None) -> Built:
    """Return a point's system. What it may choose, it chooses for the shortest interval: how many
    mini-batches are in flight and in a graph where the point leaves it open, how gradients of the
    MLPs are summed in training, and the options of bl-tuned. ``near``: where their search begins,
    which then ends where no change of the library and two members is better; without, all are
    compared.

    ``ValueError`` for EN, whose NICs hang on what it chooses:
    :func:`sim.evaluation.en_system.en_system`."""
    if point.system == EN:
        raise ValueError("system must be one whose NICs are known beforehand, not 'en'")
    options = StepOptions(point.workload == "training", all_reduce)
    if point.system == "bl-tuned":
        return _tuned(point, work, devices, options, near)
    if point.system == "cpu-mpi":
        return fastest(point.flights, [cpu_mpi(w, devices, options) for w in work.plain])
    if nic is None:
        return fastest(point.flights, *([bl_paper(w, devices, way) for w in work.plain]
                                for way in sums(options, devices) if not way.buckets))
    if point.system == "all-on-nic":
        return fastest(point.flights, [all_on_nic(w, devices, options, times)
                               for w, times in zip(work.plain, nic.times)],
                       notes=("analytical: MLPs on the multipliers that the NIC leaves in its "
                              "SLR",))
    parts = parts_of(point.system)
    computation, cached = "sc" in parts, "lc" in parts
    notes = () if computation or not options.training else (
        "analytical: gradients of bags from GPU to GPU through the NICs, as bytes",)
    return fastest(point.flights, *([smartnic(w, devices, way, times, computation, cached)
                             for w, times in zip(work.plain, nic.times)]
                            for way in sums(options, devices)), notes=notes)


def sums(options: StepOptions, devices: Devices) -> Iterator[StepOptions]:
    """Yield the ways to sum the gradients of the MLPs."""
    off_or_on = (False, True)
    for buckets, nccl in product(off_or_on if options.training else (False,),
                                 off_or_on if options.training and
                                 devices.software.collective != "nccl" else (False,)):
        yield replace(options, buckets=buckets, nccl=nccl)


def fastest(flights: Flights, *ways: list[Step], notes: tuple[str, ...] = ()) -> Built:
    """Return the fastest of several ways and flights; of equally fast ones that which is faster
    alone, with the least in flight and in a graph."""
    return _best([Built(steps, *flight, notes=notes) for flight in flights for steps in ways])


def _tuned(point: Point, work: Workloads, devices: Devices, options: StepOptions,
           near: Tuning | None) -> Built:
    """Return bl-tuned with its best options. In file order the first mini-batch stands for all;
    otherwise the two between which all others lie, in turn. With those that are best where each
    mini-batch is a graph, and those that are best otherwise, all mini-batches decide."""
    # Rounds of a search compare many of the same again.
    @cache
    def of(tuning: Tuning, number: int) -> Step:
        return bl_tuned(work.one_copied(tuning.copied_rows, number), devices, options, tuning)

    @cache
    def built_of(flight: tuple[int, int], tuning: Tuning) -> Built:
        return Built([of(tuning, number) for number in work.extremes], *flight, tuning)

    def found(flights: Flights, near: Tuning | None) -> Built:
        # An exchange is grouped with that of an earlier mini-batch, of another graph.
        chosen = _best([built_of((depth, size), tuning) for depth, size in flights
                        for tuning in tunings(options.training, near)
                        if depth >= 2 * size or not tuning.grouped])
        return chosen if near in (None, chosen.tuning) else found(flights, chosen.tuning)

    def whole(chosen: Built) -> Built:
        tuning = chosen.tuning or Tuning()
        return replace(chosen, steps=[bl_tuned(w, devices, options, tuning)
                                      for w in work.copied(tuning.copied_rows)],
                       notes=(f"bl-tuned is fastest with {_in_words(tuning)}",))

    return _best([whole(found(flights, near)) for flights in point.sets_of_flights])


def _best(every: list[Built]) -> Built:
    """Return the fastest; of equally fast ones that which is faster alone."""
    return best(every, lambda each: (each.least_us, alone_us(each.steps)),
                lambda each: (each.interval_us, alone_us(each.steps)))


def alone_us(steps: list[Step]) -> float:
    """Return how long a step takes alone, by which equally fast ways are told apart."""
    return mean(longest_us(step) for step in steps)


def _in_words(tuning: Tuning) -> str:
    """Return what a tuning uses."""
    used = [name for name, value in vars(tuning).items() if value is True]
    rows = tuning.copied_rows
    used += [f"copies of tables of at most {rows:,} rows"] if rows else []
    return ", ".join(used) or "none of its options"
