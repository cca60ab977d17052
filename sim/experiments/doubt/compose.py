"""How the points of a draw are put together: the only file of this room that knows how.

A point's NICs are run, or their times taken from elsewhere; everything else, from the constants to
the time from one mini-batch to the next, is computed as :func:`sim.experiments.points.measure.
measure` does it.
"""

from collections.abc import Sequence
from dataclasses import replace

from host.systems import NicTimes, Tuning
from host.toml.provenance import constants
from sim.experiments.points.devices import devices_of
from sim.experiments.points.nic import NicPart, nic_part, serving
from sim.experiments.points.nic_updates import with_updates
from sim.experiments.points.placing import plan_of
from sim.experiments.points.point import Point
from sim.experiments.points.steps import built
from sim.experiments.points.trace import trace_of
from sim.experiments.points.workloads import workloads
from sim.files.store import Store

__all__ = ["GATHER", "interval_of", "nic_constants", "run_nics", "source_of", "tuning_of"]

GATHER = "gpu.launch_us + gpu.kernel_us"
"""A gather without its rows."""


def nic_constants(point: Point) -> dict[str, float]:
    """Return every constant that a point's NICs see, by its name: those of the GPU that serves
    them, of PCIe and of the network. Points of one trace that agree in all of them share runs.

    The launch of a gather counts with the least time of its kernel, as `GATHER`: mostly their sum
    is what a request list waits for, and an interpolator need not find that out.
    """
    devices = devices_of(point)
    seen = {"gpu": serving(point, devices)[0], "pcie": devices.pcie, "network": devices.network}
    found = {f"{name}.{constant.name}": float(constant.value)
             for name, profile in seen.items() for constant in constants(profile)}
    return {GATHER: found.pop("gpu.launch_us") + found["gpu.kernel_us"]} | found


def run_nics(point: Point, runs: Store | None) -> NicPart:
    """Run a point's NICs, or take their runs from ``runs``."""
    return nic_part(point, trace_of(point), devices_of(point), runs)


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
        if point.workload == "training":
            nic = with_updates(point, trace, devices, work, nic)
    return built(point, work, devices, nic, near=near).interval_us


def source_of(point: Point) -> str:
    """Return where a point's samples come from, in words."""
    return trace_of(point).source
