"""Measure a point: return all of its metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from host.systems import PHASES, Step, breakdown, in_graphs, schedule
from host.systems import busy_us as busy_of
from sim.evaluation.built import Built
from sim.evaluation.fields import Options
from sim.evaluation.nic import NicPart, updates_of
from sim.evaluation.point import Point, Task
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.evaluation.system import System
from sim.evaluation.trace import Trace, arrivals_of
from sim.evaluation.workloads import (
    Workloads,
    all_reduce_traffic,
    gradient_traffic,
    software_traffic,
    totalled,
)

__all__ = ["JUDGED", "LOAD", "alone", "busy_us", "measure", "measure_system", "metrics_of",
           "request_us", "speedup"]

_NOTHING = ("service_us", "interval_us", "in_flight", "per_graph", "request_us",
            "samples_per_second", "phases_us", "busy_us", "bottleneck", "without_all_reduce",
            "local_cache", "remote_cache", "saved_lookups", "delivered", "traffic", "unique_keys",
            "accesses", "similarity", "updates", "nic_us")


def measure(point: Point | Task, runs: Store | None = None) -> dict:
    """Evaluate a point and return its metrics as plain values; a task returns its own metrics.

    ``runs``: store of NIC runs that points share; the metrics do not depend on it.

    A metric is None if the system does not have it. Times are means over the measured mini-batches,
    in microseconds:

    ========================  ===================================================================
    ``point``, ``label``      the evaluated point
    ``applicable``, ``why``   False and a reason if the system cannot be built; the rest is None
    ``notes``                 list of texts: analytical parts, effects of a short file, options
    ``source``                ``generator``, or the files of the samples
    ``service_us``            one mini-batch alone, from inputs in host memory to the prediction,
                              with the time of the algorithm that forms it
    ``interval_us``           per mini-batch in steady state with ``in_flight`` in flight
    ``in_flight``             mini-batches in flight, fixed by the point or chosen by the system
    ``per_graph``             mini-batches per graph, fixed by the point or chosen by the system
    ``request_us``            {``p50``, ``p99``} from a request's arrival to its prediction, Poisson
                              at 70 % of bl-paper's capacity, each mini-batch launched alone;
                              inference only
    ``samples_per_second``    samples of a mini-batch / ``interval_us``
    ``phases_us``             {phase: us} of `host.systems.PHASES`; their sum is ``service_us``
    ``busy_us``               {resource: us} per mini-batch, of the busiest node; ``batching``:
                              threads that form mini-batches
    ``bottleneck``            the busiest resource: {``resource``, ``us``: its busy time, a lower
                              bound of ``interval_us``, ``utilisation``: bound over interval}
    ``without_all_reduce``    training only: {``service_us``, ``interval_us``,
                              ``samples_per_second``} without the MLPs' all-reduce
    ``local_cache``,          {``rows``, ``hit_rate`` (a duplicate in a mini-batch is a hit),
    ``remote_cache``          ``hit_rate_unique`` (without duplicates), ``hits``, ``accesses``}
    ``saved_lookups``         lookups that did not cross the network, over the trace
    ``delivered``             EN with unique delivery: {``slots`` (and an end of each share),
                              ``vectors``, ``retired_early`` (keys that a NIC evicted within a
                              share)} per mini-batch, all nodes
    ``traffic``               {kind: {``bytes``, ``packets``}} per mini-batch, all nodes; kinds
                              ``lookups``, ``vectors``, ``gradients``, ``all_reduce``, ``total``
    ``unique_keys``           unique keys of a mini-batch
    ``accesses``              lookups of a mini-batch
    ``similarity``            1 - unique_keys / accesses
    ``updates``               training with a local cache: {``rows`` updated per mini-batch,
                              ``misses``: updated rows that were evicted from the cache}
    ``nic_us``                simulated NICs: {``service``, ``interval``, ``update`` (training),
                              ``interaction`` (from dense vectors to the last answer, if lookups
                              finish before), ``launches``, ``gathered`` (calls to, and rows read
                              by, the busiest node's GPU)}
    ``mini_batch``            samples of a mini-batch
    ========================  ===================================================================

    Raises ``ValueError`` (:class:`host.errors.InputError` for a malformed file) if the point names
    a file or profile that does not exist.
    """
    if isinstance(point, Task):
        return point.measured(runs)
    return measure_system(point, Site.of(point, runs))[0]


def measure_system(point: Point, site: Site) -> tuple[dict, Built | None]:
    """Return the metrics of a point, as :func:`measure` does, and its system, None if not
    applicable. ``site``: of the point.
    """
    why = point.kind.why_not(site)
    if why:
        return _described(point, site.trace) | dict.fromkeys(_NOTHING) | {
            "applicable": False, "why": why}, None
    system, nic = point.kind.at(site)
    return metrics_of(point, site, system, nic), system


def _described(point: Point, trace: Trace) -> dict:
    return {"point": point.to_json(), "label": point.label, "applicable": True, "why": None,
            "source": trace.source, "mini_batch": trace.mini_batch, "notes": list(trace.notes)}


def metrics_of(point: Point, site: Site, system: Built, nic: NicPart | None) -> dict:
    """Return the metrics of a system, as :func:`measure` does.

    ``site``: of the point. ``system``, ``nic``: see :meth:`sim.evaluation.system.System.at`.
    """
    kind, trace, work = point.kind, site.trace, site.work
    result = _described(point, trace)
    steps, interval, forming = system.steps, system.interval_us, system.forming
    service, phases = alone(steps, forming.us)
    busy = busy_us(steps, system.per_graph)
    if forming.us:
        busy["batching"] = forming.interval_us
    result["notes"] += [*(nic.notes if nic else ()), *system.notes]
    unique, accesses = (float(np.mean([getattr(w, name) for w in work.plain]))
                        for name in ("distinct", "accesses"))
    return result | {
        "service_us": service, "interval_us": interval, "in_flight": system.in_flight,
        "per_graph": system.per_graph,
        "phases_us": phases,
        "samples_per_second": trace.mini_batch / interval * 1e6,
        "busy_us": busy, "bottleneck": _bottleneck(busy, interval),
        "request_us": _requests(point, trace, system),
        "without_all_reduce": _without(kind, site, nic),
        "local_cache": nic and nic.local_cache,
        "remote_cache": nic and _remote(nic, work, kind.chooses_nics
                                        or point.cluster.gpus_per_nic > 1),
        "saved_lookups": nic and nic.saved_lookups, "delivered": nic and nic.delivered,
        "traffic": _traffic(point, work, nic, system),
        "unique_keys": unique, "accesses": accesses,
        "similarity": float(np.mean([w.similarity for w in work.plain])),
        "updates": _updates(point, trace, nic),
        "nic_us": nic and {
            "service": float(np.mean([times.service_us for times in nic.times])),
            "interval": nic.times[0].interval_us, "update": float(
                np.mean([times.update_us for times in nic.times])) or None,
            "interaction": float(np.mean([times.interaction_us for times in nic.times])) or None,
            "launches": nic.times[0].launches, "gathered": nic.times[0].gathered},
    }


def _requests(point: Point, trace: Trace, system: Built) -> dict | None:
    """Return the request latency at 70 % of the capacity of bl-paper in file order."""
    if point.workload.training:
        return None
    base = replace(point, system=Options("bl-paper", point.system.in_flight),
                   workload=replace(point.workload, batching="file", window=None))
    paper, _ = base.kind.at(Site.of(base))
    capacity = trace.mini_batch / paper.interval_us
    return request_us(trace, system, capacity, point.workload.seed)


def _without(kind: System, site: Site, nic: NicPart | None) -> dict | None:
    """Return the times of training without the MLPs' all-reduce."""
    if not site.training:
        return None
    system = kind.without_all_reduce(site, nic)
    interval = system.interval_us
    return {"service_us": alone(system.steps, system.forming.us)[0], "interval_us": interval,
            "samples_per_second": site.trace.mini_batch / interval * 1e6}


def _updates(point: Point, trace: Trace, nic: NicPart | None) -> dict | None:
    """Return the mean of :func:`updates_of`; None without a local cache."""
    if not point.workload.training or nic is None or nic.local_cache is None:
        return None
    return updates_of(point, point.kind.nics(point), trace, nic).to_json()


def _remote(nic: NicPart, work: Workloads, fewer: bool) -> dict | None:
    """Return the remote cache's counts with its hit rate of unique keys, None if NICs see ``fewer``
    keys than a share has."""
    found = nic.remote_cache
    if found is None or fewer:
        return found and found | {"hit_rate_unique": None}
    unique = sum(int(w.requested.sum() - np.trace(w.requested)) for w in work.plain)
    missed = found["accesses"] - found["hits"]
    return found | {"hit_rate_unique": 1 - missed / unique if unique else None}


def _traffic(point: Point, work: Workloads, nic: NicPart | None, system: Built) -> dict | None:
    training, mtu = point.workload.training, point.cluster.mtu
    plain, gpus = work.plain, point.cluster.gpus
    if point.cluster.endpoints == 1:
        return None
    if nic is not None:
        traffic = {kind: dict(count) for kind, count in nic.traffic.items() if kind != "total"}
        if training and "gradients" not in traffic:
            traffic["gradients"] = gradient_traffic(plain)
        other = {unit: nic.traffic["total"][unit] - sum(
            nic.traffic[kind][unit] for kind in ("lookups", "vectors"))
            for unit in ("bytes", "packets")}
        traffic["other"] = other
    elif system.tuning is not None:
        traffic = software_traffic(work.copied(system.tuning.copied_rows), training,
                                   system.tuning, gpus, mtu)
    else:
        traffic = software_traffic(plain, training, gpus=gpus, mtu=mtu)
    if training:
        traffic["all_reduce"] = all_reduce_traffic(plain, gpus, mtu)
    return totalled(traffic)


def alone(steps: Sequence[Step], forming_us: float = 0.0) -> tuple[float, dict[str, float]]:
    """Return the mean time of a step that runs alone, and the means of its phases.

    ``forming_us``: time in which a CPU thread forms the mini-batch, part of ``overhead``.
    """
    phases: dict[str, float] = dict.fromkeys(PHASES, 0.0) | {"overhead": forming_us}
    for step in steps:
        for name, us in breakdown(step).items():
            phases[name] += us / len(steps)
    return sum(phases.values()), phases


def busy_us(steps: Sequence[Step], per_graph: int = 1) -> dict[str, float]:
    """Return the mean time that each resource of the busiest node serves a step. A stage that uses
    a share of a resource counts with that share. ``per_graph``: see
    :func:`sim.evaluation.built.interval_us`."""
    graphs = in_graphs(steps, per_graph)
    busy = {str(name): us for name, us in busy_of(graphs).items()}
    return {name: us / (len(graphs) * per_graph) for name, us in sorted(busy.items())}


def _bottleneck(busy: Mapping[str, float], interval: float) -> dict | None:
    """Return the busiest resource, its time and its utilisation, or None."""
    if not busy:
        return None
    name = max(busy, key=lambda each: busy[each])
    return {"resource": name, "us": busy[name], "utilisation": busy[name] / interval}


LOAD = 0.7
"""Arrival rate of requests, as a share of bl-paper's capacity."""


def request_us(trace: Trace, system: Built, capacity: float, seed: int) -> dict[str, float]:
    """Return median and 99th percentile of the latency over the measured samples.

    Samples arrive as a Poisson process at `LOAD` of ``capacity`` (samples per microsecond). A
    window is ready when its last sample arrives; in file order, a mini-batch is a window. CPU
    threads then form its mini-batches.
    """
    arrived = arrivals_of(trace, LOAD * capacity, seed)
    ready = np.maximum.accumulate([arrived[trace.ready(batch)] for batch in trace.measured])
    if system.forming.us:
        ready = np.array(system.forming.formed(ready.tolist(),
                                               [batch.fresh for batch in trace.measured]))
    done = schedule(system.steps, system.in_flight, ready.tolist()).finished
    waits = np.concatenate([end - arrived[batch.numbers]
                            for end, batch in zip(done, trace.measured)])
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99))}


JUDGED = {"inference": "interval_us", "training": "samples_per_second"}
"""Metric by workload: time per mini-batch in steady state, and a rate."""


def speedup(metric: str, own: float | None, base: float | None) -> float | None:
    """Return how many times faster ``own`` is than ``base``; None if either is missing or 0.

    ``metric``: metric of both; all but ``samples_per_second`` are times.
    """
    if not own or not base:
        return None
    return own / base if metric.endswith("samples_per_second") else base / own
