"""Steps of a point's system for each measured mini-batch."""

from functools import lru_cache

from host.placement.shard import ShardPlan
from host.systems import (
    Devices,
    Step,
    StepOptions,
    Tuning,
    Workload,
    all_on_nic,
    best_tuning,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    smartnic,
    workload_of,
)
from sim.experiments.points.nic import NicPart
from sim.experiments.points.point import Point
from sim.experiments.points.systems import parts_of
from sim.experiments.points.timing import interval_us
from sim.experiments.points.trace import Trace

__all__ = ["Workloads", "chosen_tuning", "steps_of", "workloads"]


class Workloads:
    """What each measured mini-batch of a trace asks of the nodes of a plan. Compared by identity.
    """

    def __init__(self, trace: Trace, plan: ShardPlan):
        self._trace, self._plans = trace, {0: plan}
        self._made: dict[tuple[int, int], Workload] = {}

    @property
    def plain(self) -> list[Workload]:
        """Each mini-batch with tables placed as for all systems."""
        return self.copied(0)

    @property
    def extremes(self) -> tuple[int, ...]:
        """Numbers of mini-batches between which all others lie: the graph algorithm forms similar
        ones first and what is left last; in file order any is as good as another."""
        count = len(self._trace.measured)
        return (0,) if self._trace.of.batching == "file" else tuple(dict.fromkeys((0, count - 1)))

    def copied(self, rows: int) -> list[Workload]:
        """Each mini-batch with tables of at most ``rows`` rows copied to every node and the others
        dealt again; 0 for none."""
        return [self.one_copied(rows, number) for number in range(len(self._trace.measured))]

    def one_copied(self, rows: int, number: int) -> Workload:
        """Mini-batch ``number`` of :meth:`copied`."""
        if rows not in self._plans:
            self._plans[rows] = self._plans[0].with_copies(rows)
        if (rows, number) not in self._made:
            self._made[rows, number] = workload_of(
                self._trace.measured[number].samples, self._trace.model, self._plans[rows])
        return self._made[rows, number]


@lru_cache(maxsize=8)
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return what each measured mini-batch asks of the nodes of ``plan``."""
    return Workloads(trace, plan)


def steps_of(point: Point, work: Workloads, devices: Devices, nic: NicPart | None,
             all_reduce: bool = True) -> tuple[list[Step], list[str]]:
    """Return the steps of a system, and notes."""
    options = StepOptions(point.workload == "training", all_reduce)
    if point.system in ("bl-paper", "cpu-mpi"):
        build = bl_paper if point.system == "bl-paper" else cpu_mpi
        return [build(w, devices, options) for w in work.plain], []
    if point.system == "bl-tuned":
        tuning = chosen_tuning(work, devices, options, point.depth)
        return (_tuned(work, devices, options, tuning),
                [f"bl-tuned is fastest with {_in_words(tuning)}"])
    assert nic is not None
    if point.system == "all-on-nic":
        return ([all_on_nic(w, devices, options, times)
                 for w, times in zip(work.plain, nic.times)],
                ["analytical: MLPs on the multipliers that the NIC leaves in its SLR"])
    parts = parts_of(point.system)
    computation, cached = "sc" in parts, "lc" in parts
    notes = [] if computation or not options.training else [
        "analytical: gradients of bags from GPU to GPU through the NICs, as bytes"]
    ways = [StepOptions(options.training, all_reduce, buckets) for buckets in (
        (False, True) if options.training and devices.software.graphs else (False,))]
    built = [[smartnic(w, devices, way, times, computation, cached)
              for w, times in zip(work.plain, nic.times)] for way in ways]
    return min(built, key=lambda steps: interval_us(steps, point.depth)), notes


@lru_cache(maxsize=64)
def chosen_tuning(work: Workloads, devices: Devices, options: StepOptions, depth: int) -> Tuning:
    """Return the tuning of the shortest interval over all mini-batches, from which no change of one
    option leads to a shorter one. In file order the first mini-batch stands for all; otherwise the
    search begins with what is best on each of the extreme ones."""
    found = [_best_on(number, work, devices, options, depth) for number in work.extremes]
    if len(work.extremes) == 1:
        return found[0]
    return best_tuning(lambda tuning: interval_us(_tuned(work, devices, options, tuning), depth),
                       found)


def _best_on(number: int, work: Workloads, devices: Devices, options: StepOptions,
             depth: int) -> Tuning:
    """Return the best tuning for mini-batches like ``number``."""
    def cost(tuning: Tuning) -> float:
        w = work.one_copied(tuning.copied_rows, number)
        return interval_us([bl_tuned(w, devices, options, tuning)] * (depth + 2), depth)

    return best_tuning(cost)


def _tuned(work: Workloads, devices: Devices, options: StepOptions, tuning: Tuning) -> list[Step]:
    return [bl_tuned(w, devices, options, tuning) for w in work.copied(tuning.copied_rows)]


def _in_words(tuning: Tuning) -> str:
    """Return what a tuning uses."""
    used = [name for name, value in vars(tuning).items() if value is True]
    rows = tuning.copied_rows
    used += [f"copies of tables of at most {rows:,} rows"] if rows else []
    return ", ".join(used) or "none of its options"
