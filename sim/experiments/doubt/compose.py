"""How the points of a draw are put together: the only file of this room that knows how.

A point's NICs are run, or their times taken from elsewhere; everything else, from the constants to
the time from one mini-batch to the next, is computed as :func:`sim.evaluation.measure.
measure` does it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from host.data.contents import contents
from host.systems import EnTuning, NicTimes, Tuning, en_tunings, fixed_of, options_of
from host.toml.provenance import constants
from sim.evaluation.devices import devices_of
from sim.evaluation.en_nic import en_nic, nic_devices, nic_point
from sim.evaluation.en_system import en_built, en_system
from sim.evaluation.nic import NicPart, nic_part, serving
from sim.evaluation.nic_updates import with_updates
from sim.evaluation.point import Point
from sim.evaluation.steps import built
from sim.evaluation.store import Store
from sim.evaluation.systems import EN
from sim.evaluation.trace import plan_of, trace_of
from sim.evaluation.workloads import workloads

__all__ = ["GATHER", "interval_of", "nic_constants", "run_nics", "served_ways", "settled",
           "source_of", "tuning_of"]

GATHER = "gpu.launch_us + gpu.kernel_us"
"""A gather without its rows."""


def nic_constants(point: Point) -> dict[str, float]:
    """Return every constant that a point's NICs see, by its name: those of the GPU that serves
    them, of PCIe and of the network. Points of one trace that agree in all of them share runs.

    The launch of a gather counts with the least time of its kernel, as `GATHER`: mostly their sum
    is what a request list waits for, and an interpolator need not find that out. Where EN leaves an
    option open, it has it. What a short write takes is no part of PCIe for them: it is in the time
    of a poll.
    """
    devices = devices_of(point)
    if point.system == EN:
        own = _en_tuning(point)
        point, devices = nic_point(point, devices, own), nic_devices(devices, own)
    seen = {"gpu": serving(point, devices)[0], "pcie": devices.pcie, "network": devices.network}
    found = {f"{name}.{constant.name}": float(constant.value)
             for name, profile in seen.items() for constant in constants(profile)
             if constant.name != "write_us"}
    return {GATHER: found.pop("gpu.launch_us") + found["gpu.kernel_us"]} | found


def served_ways(point: Point) -> list[Point]:
    """Return a point in each way in which its NICs may get rows, since constants reach them by it:
    EN chooses from several what it leaves open, other systems have one."""
    if point.system != EN:
        return [point]
    ways = {(each.ring, each.reads): each
            for each in en_tunings(point.workload == "training", fixed_of(point.en))}
    return [replace(point, en=options_of(each)) for each in ways.values()]


def run_nics(point: Point, runs: Store | None) -> NicPart:
    """Run a point's NICs, or take their runs from ``runs``."""
    trace, devices = trace_of(point), devices_of(point)
    if point.system == EN:
        return en_nic(point, trace, devices, _en_tuning(point), runs)
    return nic_part(point, trace, devices, runs)


def settled(point: Point, runs: Store | None) -> Point:
    """Return a point with as many mini-batches in flight and in a graph as its system has there,
    and with every option of EN as EN has it there."""
    return _settled(point, runs, contents(point.data))


@lru_cache(maxsize=16)
def _settled(point: Point, runs: Store | None, _: tuple[str, ...]) -> Point:
    trace, devices = trace_of(point), devices_of(point)
    work = workloads(trace, plan_of(point, trace))
    if point.system != EN:
        found = built(point, work, devices, None)
        return replace(point, in_flight=found.in_flight, per_graph=found.per_graph)
    chosen = en_system(point, trace, work, devices, runs)
    return replace(point, in_flight=chosen.built.in_flight, per_graph=chosen.built.per_graph,
                   en=options_of(chosen.tuning))


def tuning_of(point: Point) -> Tuning | None:
    """Return the options of bl-tuned at a point, None for other baselines."""
    trace, devices = trace_of(point), devices_of(point)
    return built(point, workloads(trace, plan_of(point, trace)), devices, None).tuning


def interval_of(point: Point, nic: NicPart | None = None,
                times: Sequence[NicTimes] | None = None, near: Tuning | None = None) -> float:
    """Return a point's time from one mini-batch to the next.

    ``nic``: its NICs, None for a baseline; ``times``: in place of those of ``nic``. ``near``: the
    options of bl-tuned with which its search begins.
    """
    trace, devices = trace_of(point), devices_of(point)
    work = workloads(trace, plan_of(point, trace))
    if nic is not None:
        if times is not None:
            nic = replace(nic, times=list(times))
        if point.system == EN:
            return en_built(point, trace, work, devices, _en_tuning(point), nic.times).interval_us
        if point.workload == "training":
            nic = with_updates(point, trace, devices, work, nic)
    return built(point, work, devices, nic, near=near).interval_us


def _en_tuning(point: Point) -> EnTuning:
    return EnTuning(**fixed_of(point.en))


def source_of(point: Point) -> str:
    """Return where a point's samples come from, in words."""
    return trace_of(point).source
