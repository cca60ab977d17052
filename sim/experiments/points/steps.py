"""Steps of a point's system for each measured mini-batch."""

from functools import cached_property, lru_cache

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
        self._trace, self._plan = trace, plan
        self._copied: dict[int, list[Workload]] = {}

    @cached_property
    def plain(self) -> list[Workload]:
        """Each mini-batch with tables placed as for all systems."""
        return self._under(self._plan, len(self._trace.measured))

    def copied(self, rows: int, first: int | None = None) -> list[Workload]:
        """Each mini-batch, or the ``first`` ones, with tables of at most ``rows`` rows copied to
        every node and the others dealt again."""
        if not rows:
            return self.plain[:first]
        if len(self._copied.get(rows, ())) < (count := first or len(self._trace.measured)):
            self._copied[rows] = self._under(self._plan.with_copies(rows), count)
        return self._copied[rows][:first]

    def _under(self, plan: ShardPlan, count: int) -> list[Workload]:
        return [workload_of(batch.samples, self._trace.model, plan)
                for batch in self._trace.measured[:count]]


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
        return ([bl_tuned(w, devices, options, tuning) for w in work.copied(tuning.copied_rows)],
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
    return min(built, key=lambda steps: interval_us(steps[:1], point.depth)), notes


@lru_cache(maxsize=64)
def chosen_tuning(work: Workloads, devices: Devices, options: StepOptions, depth: int) -> Tuning:
    """Return the tuning of the shortest interval on the first mini-batch."""
    def cost(tuning: Tuning) -> float:
        step = bl_tuned(work.copied(tuning.copied_rows, 1)[0], devices, options, tuning)
        return interval_us([step] * (depth + 2), depth)

    return best_tuning(cost)


def _in_words(tuning: Tuning) -> str:
    """Return what a tuning uses."""
    used = [name for name, value in vars(tuning).items() if value is True]
    rows = tuning.copied_rows
    used += [f"copies of tables of at most {rows:,} rows"] if rows else []
    return ", ".join(used) or "none of its options"
