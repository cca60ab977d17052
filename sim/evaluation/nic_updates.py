"""The gradient path of a point's NICs: how long it takes, and which rows it updates."""

from dataclasses import replace

from host.systems import Devices, NicTimes
from rtl.config import preset
from sim.evaluation.gradient_path import GradientPath
from sim.evaluation.nic import NicPart, serving
from sim.evaluation.placing import plan_of
from sim.evaluation.point import Point
from sim.evaluation.reductions import reductions
from sim.evaluation.systems import parts_of
from sim.evaluation.trace import Trace
from sim.evaluation.traffic import gradient_traffic
from sim.evaluation.training import trained
from sim.evaluation.updates import Updates, updates_of_trace
from sim.evaluation.workloads import Workloads
from sim.job.settings import apply_settings

__all__ = ["updates_of", "with_updates"]


def with_updates(point: Point, trace: Trace, devices: Devices, work: Workloads,
                 nic: NicPart) -> NicPart:
    """Return ``nic`` with the times of the gradient path, where the NICs have it."""
    if "sc" not in parts_of(point.system) and point.system != "all-on-nic":
        return nic
    if point.fidelity == "rtl":
        ran = trained(point, trace, devices)
        times: list[NicTimes] = [replace(times, update_us=ran.update_us) for times in nic.times]
        return replace(nic, times=times, traffic=nic.traffic | {"gradients": ran.gradients})
    config, runtime = apply_settings(preset(point.dataset), list(point.settings))
    path = GradientPath(config, devices, serving(point, devices, trace.model)[0],
                        runtime.gradient_timeout)
    sums = reductions(trace, plan_of(point, trace), config)
    times = [replace(times, update_us=path.us(*of)) for times, *of in zip(
        nic.times, work.plain, sums, updates_of(point, trace, nic).misses)]
    return replace(nic, times=times, traffic=nic.traffic | {
        "gradients": gradient_traffic(work.plain, sums)}, notes=[
        *nic.notes, "the gradient path of the NICs from its events, not from RTL"])


def updates_of(point: Point, trace: Trace, nic: NicPart) -> Updates:
    """Return the rows that the measured steps update, and those of them that no cache holds."""
    config, _ = apply_settings(preset(point.dataset), list(point.settings))
    return updates_of_trace(trace, plan_of(point, trace),
                            nic.local_cache["rows"] if nic.local_cache else 0,
                            config.local_cache_ways, config.policy)
