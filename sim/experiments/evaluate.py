"""From a point to its metrics."""

from dataclasses import replace

import numpy as np

from host.shard import ShardPlan
from host.systems import Devices, NicTimes, Step, StepOptions
from host.systems.all_on_nic import not_applicable
from host.systems.nic_gradients import gradient_us
from rtl.config import preset

from .build import Workloads, best_tuning, steps_of, workloads
from .nic import NicPart, nic_part
from .point import Point
from .requests import request_us
from .store import Store
from .systems import BASELINES, parts_of
from .timing import alone, busy_us, interval_us
from .trace import Trace, trace_of
from .traffic import all_reduce_traffic, gradient_traffic, software_traffic, totalled
from .training import trained
from .updates import updates

__all__ = ["evaluate"]

_NOTHING = ("service_us", "interval_us", "request_us", "samples_per_second", "phases_us", "busy_us",
            "without_all_reduce", "local_cache", "remote_cache", "saved_lookups", "traffic",
            "unique_keys", "accesses", "similarity", "updates", "nic_us")


def evaluate(point: Point, runs: Store | None = None) -> dict:
    """Return the metrics of :func:`sim.experiments.point.measure`."""
    trace = trace_of(point)
    devices = Devices.load(point.nodes, point.software, point.gpu, point.scaled)
    work = workloads(trace, point.nodes)
    result: dict = {"point": point.to_json(), "label": point.label, "applicable": True,
                    "why": None, "source": trace.source, "mini_batch": trace.mini_batch,
                    "notes": list(trace.notes)}
    why = not_applicable(work[0][0]) if point.system == "all-on-nic" else None
    if why:
        return result | dict.fromkeys(_NOTHING) | {"applicable": False, "why": why}
    nic = None
    if point.system not in BASELINES:
        nic = nic_part(point, trace, devices, runs)
        if point.workload == "training":
            nic = _with_updates(point, trace, devices, work, nic)
    steps, notes = steps_of(point, work, devices, nic)
    service, phases = alone(steps)
    interval = interval_us(steps, point.depth)
    result["notes"] += [*(nic.notes if nic else ()), *notes]
    unique, accesses = (float(np.mean([getattr(w, name) for w, _ in work]))
                        for name in ("distinct", "accesses"))
    return result | {
        "service_us": service, "interval_us": interval, "phases_us": phases,
        "samples_per_second": trace.mini_batch / interval * 1e6,
        "busy_us": busy_us(steps),
        "request_us": _requests(point, trace, devices, steps),
        "without_all_reduce": _without(point, trace, work, devices, nic),
        "local_cache": nic and nic.local_cache,
        "remote_cache": nic and _remote(nic, work),
        "saved_lookups": nic and nic.saved_lookups,
        "traffic": _traffic(point, work, devices, nic),
        "unique_keys": unique, "accesses": accesses,
        "similarity": float(np.mean([w.similarity for w, _ in work])),
        "updates": _updates(point, trace, nic),
        "nic_us": nic and {
            "service": float(np.mean([times.service_us for times in nic.times])),
            "interval": nic.times[0].interval_us, "update": nic.times[0].update_us or None,
            "launches": nic.times[0].launches},
    }


def _requests(point: Point, trace: Trace, devices: Devices, steps: list[Step]) -> dict | None:
    """Return the latency of requests at a load that bl-paper, in file order, could carry."""
    if point.workload == "training":
        return None
    base = replace(point, system="bl-paper", batching="file", window=None,
                   persistent_gather=False)
    paper, _ = steps_of(base, workloads(trace_of(base), point.nodes), devices, None)
    capacity = trace.mini_batch / interval_us(paper, point.depth)
    return request_us(trace, steps, point.depth, capacity, point.seed)


def _without(point: Point, trace: Trace, work: Workloads, devices: Devices,
             nic: NicPart | None) -> dict | None:
    """Return the times of training without the MLPs' all-reduce."""
    if point.workload != "training":
        return None
    steps, _ = steps_of(point, work, devices, nic, all_reduce=False)
    interval = interval_us(steps, point.depth)
    return {"service_us": alone(steps)[0], "interval_us": interval,
            "samples_per_second": trace.mini_batch / interval * 1e6}


def _with_updates(point: Point, trace: Trace, devices: Devices, work: Workloads,
                  nic: NicPart) -> NicPart:
    """Return ``nic`` with the times of the gradient path, where the NICs have it."""
    if "sc" not in parts_of(point.system) and point.system != "all-on-nic":
        return nic
    if point.fidelity == "rtl":
        ran = trained(point, trace, devices)
        times: list[NicTimes] = [replace(times, update_us=ran.update_us) for times in nic.times]
        return replace(nic, times=times, traffic=nic.traffic | {"gradients": ran.gradients})
    times = [replace(times, update_us=gradient_us(w, devices))
             for times, (w, _) in zip(nic.times, work)]
    return replace(nic, times=times, notes=[
        *nic.notes, "analytical: the gradient path of the NICs, from its rates"])


def _updates(point: Point, trace: Trace, nic: NicPart | None) -> dict | None:
    """Return the rows that a step updates and those that no cache holds; None without one."""
    if point.workload != "training" or nic is None or nic.local_cache is None:
        return None
    return updates(trace.batches, range(trace.warmup, len(trace.batches)),
                   ShardPlan.deal(trace.model, point.nodes), nic.local_cache["rows"],
                   preset(point.dataset).local_cache_ways)


def _remote(nic: NicPart, work: Workloads) -> dict | None:
    """Return the remote cache's counts with its hit rate of unique keys."""
    found = nic.remote_cache
    if found is None:
        return None
    unique = sum(int(w.requested.sum() - np.trace(w.requested)) for w, _ in work)
    missed = found["accesses"] - found["hits"]
    return found | {"hit_rate_unique": 1 - missed / unique if unique else None}


def _traffic(point: Point, work: Workloads, devices: Devices, nic: NicPart | None) -> dict | None:
    training = point.workload == "training"
    plain = [w for w, _ in work]
    if point.nodes == 1:
        return None
    if nic is not None:
        traffic = {kind: dict(count) for kind, count in nic.traffic.items() if kind != "total"}
        if training and "gradients" not in traffic:
            traffic["gradients"] = gradient_traffic(
                plain, "sc" in parts_of(point.system) or point.system == "all-on-nic")
        other = {unit: nic.traffic["total"][unit] - sum(
            nic.traffic[kind][unit] for kind in ("lookups", "vectors"))
            for unit in ("bytes", "packets")}
        traffic["other"] = other
    elif point.system == "bl-tuned":
        tuning = best_tuning(work[0], devices, StepOptions(training), point.depth)
        traffic = software_traffic([small if tuning.replicate else w for w, small in work],
                                   training, tuning)
    else:
        traffic = software_traffic(plain, training)
    if training:
        traffic["all_reduce"] = all_reduce_traffic(plain)
    return totalled(traffic)
