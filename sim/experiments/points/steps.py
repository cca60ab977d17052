"""Steps of a point's system for each measured mini-batch."""

from collections.abc import Sequence
from functools import lru_cache

from host.placement.shard import ShardPlan
from host.systems import (
    Devices,
    Step,
    StepOptions,
    Tuning,
    Workload,
    all_on_nic,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    replicate_small,
    smartnic,
    workload_of,
)
from host.systems.bl_tuned import SMALL_ROWS, tunings
from sim.experiments.points.nic import NicPart
from sim.experiments.points.point import Point
from sim.experiments.points.systems import parts_of
from sim.experiments.points.timing import interval_us
from sim.experiments.points.trace import Trace

__all__ = ["Workloads", "steps_of", "workloads"]

Workloads = Sequence[tuple[Workload, Workload]]
"""Each measured mini-batch: with tables placed as for all systems, and with small ones replicated.
"""


@lru_cache(maxsize=8)
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return what each measured mini-batch asks of the nodes of ``plan``."""
    small = replicate_small(plan, trace.model, SMALL_ROWS)
    return [(workload_of(batch.samples, trace.model, plan),
             workload_of(batch.samples, trace.model, small)) for batch in trace.measured]


def steps_of(point: Point, work: Workloads, devices: Devices, nic: NicPart | None,
             all_reduce: bool = True) -> tuple[list[Step], list[str]]:
    """Return the steps of a system, and notes."""
    options = StepOptions(point.workload == "training", all_reduce)
    if point.system in ("bl-paper", "cpu-mpi"):
        build = bl_paper if point.system == "bl-paper" else cpu_mpi
        return [build(w, devices, options) for w, _ in work], []
    if point.system == "bl-tuned":
        tuning = best_tuning(work[0], devices, options, point.depth)
        left_out = [name for name, used in vars(tuning).items() if not used]
        return ([bl_tuned(*pair, devices, options, tuning) for pair in work],
                [f"bl-tuned without {', '.join(left_out)}, which cost more than they save"]
                if left_out else [])
    assert nic is not None
    if point.system == "all-on-nic":
        return ([all_on_nic(w, devices, options, times) for (w, _), times in zip(work, nic.times)],
                ["analytical: MLPs on the multipliers that the NIC leaves in its SLR"])
    parts = parts_of(point.system)
    computation, cached = "sc" in parts, "lc" in parts
    notes = [] if computation or not options.training else [
        "analytical: gradients of bags from GPU to GPU through the NICs, as bytes"]
    return [smartnic(w, devices, options, times, computation, cached)
            for (w, _), times in zip(work, nic.times)], notes


@lru_cache(maxsize=8)
def best_tuning(pair: tuple[Workload, Workload], devices: Devices, options: StepOptions,
                depth: int) -> Tuning:
    """Return the tuning of the shortest interval on a mini-batch; of equal ones the first."""
    def cost(tuning: Tuning) -> float:
        return interval_us([bl_tuned(*pair, devices, options, tuning)] * (depth + 2), depth)

    return min(tunings(), key=cost)
