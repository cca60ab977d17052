"""Measured mini-batches of a point: their steps, and the cost of a sample.

The only module of this package that knows how points are measured.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from host.systems import Stage, Step, schedule
from sim.evaluation.fields import Workload, devices_of, model_of
from sim.evaluation.forming import FILE_ORDER, Forming
from sim.evaluation.measure import busy_us, measure_system
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.evaluation.systems import canonical, system_of
from sim.evaluation.trace import FewSamplesError

__all__ = ["COSTS", "WINDOW", "MiniBatches", "finished_us", "measured", "point_of"]

WINDOW = 16
"""Mini-batches of the graph algorithm's window."""

COSTS = ("gpu_us", "pcie_us", "pcie_bytes", "network_bytes", "cpu_us", "nic_us")
"""Cost of a sample on the whole cluster, if all nodes were as busy as the busiest: GPU time,
weighted by occupied multiprocessors; PCIe time and bytes, both directions; network bytes of all
nodes; host thread time; NIC time."""

_KEPT = ("applicable", "why", "mini_batch", "source", "notes", "service_us", "interval_us")
"""Metrics of a point that :func:`measured` repeats."""

_MEASURED = 2 * WINDOW
_WARMUP_SAMPLES = 2048
"""Least samples, besides a window, that fill the caches before the measurement."""


def point_of(mini_batch: int, graph: bool, system: str, **fields: Any) -> Point:
    """Return the point of mini-batches of that many samples, formed by the graph algorithm or in
    order of arrival; ``fields``: fields of a :class:`Point`; fields that the system does not have
    are ignored. Caches have the rows of the preset. GPUs compute an interaction that NICs cannot.

    Raises ``ValueError`` as a point does.
    """
    warmup = WINDOW * max(1, ceil(_WARMUP_SAMPLES / (WINDOW * mini_batch)))
    own = system_of(canonical(system)[0]).for_model(
        model_of(fields.get("dataset", Workload.dataset)), "inference")
    return Point.named(**own, common={"local_cache": None, "remote_cache": None} | fields,
                       mini_batch=mini_batch, warmup=warmup,
                       measured=_MEASURED, batching="graph" if graph else "file")


@dataclass(frozen=True, eq=False)
class MiniBatches:
    """Mini-batches of one size, formed in one way, on one system.

    Members
    -------
    size: samples of each. graph: whether the graph algorithm formed them; their steps are then
        consecutive whole windows.
    steps: steps of each measured mini-batch. least_us: time of the fastest mini-batch alone.
    interval_us: time between mini-batches with as many as possible in flight.
    per_sample: mean cost of a sample, see `COSTS`.
    forming: threads that form them.
    """

    size: int
    graph: bool
    steps: list[Step]
    least_us: float
    interval_us: float
    per_sample: Mapping[str, float]
    forming: Forming = FILE_ORDER

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "MiniBatches":
        """Return the mini-batches from the result of :func:`measured`."""
        steps = [Step([Stage(**{name: _tuples(value) for name, value in stage.items()})
                       for stage in stages]) for stages in found["steps"]]
        return cls(found["mini_batch"], found["graph"], steps, found["least_us"],
                   found["interval_us"], found["per_sample"], Forming(**found["forming"]))


def measured(point: Point, runs: Store | None = None) -> dict:
    """Measure the mini-batches of a point and return plain values.

    ``applicable``, ``why``, ``mini_batch``, ``graph``, ``source``, ``notes``; and, None if not
    applicable, ``service_us``, ``least_us``, ``interval_us``, ``steps``, ``forming`` (members of
    :class:`sim.evaluation.forming.Forming`) and ``per_sample``, see `COSTS`.
    """
    try:
        found, system = measure_system(point, Site.of(point, runs))
    except FewSamplesError:
        found, system = dict.fromkeys(_KEPT) | {
            "applicable": False, "why": "too few samples, left out", "notes": [],
            "mini_batch": point.workload.samples}, None
    kept = {name: found[name] for name in _KEPT}
    kept["graph"] = point.workload.batching == "graph"
    if system is None:
        return kept | dict.fromkeys(("steps", "least_us", "forming", "per_sample"))
    steps, traffic, size = system.steps, found["traffic"], found["mini_batch"]
    costs = _costs(busy_us(steps), point, size)
    return kept | {
        "least_us": system.forming.us + min(
            float(schedule([step]).finished[0]) for step in steps),
        "forming": asdict(system.forming),
        "interval_us": system.interval_us,
        "steps": [[asdict(stage) for stage in step.stages] for step in steps],
        "per_sample": costs | {
            "cpu_us": costs["cpu_us"] + system.forming.us / size,
            "network_bytes": traffic["total"]["bytes"] / size if traffic else 0.0}}


def finished_us(steps: list[Step], ready: list[float], in_flight: int) -> Any:
    """Return the end time of each step, given the times when steps are ready, float64 ``[steps]``.
    """
    return schedule(steps, in_flight, ready).finished


def _costs(busy: Mapping[str, float], point: Point, samples: int) -> dict:
    """Return all `COSTS` but the network's, from the busy times of a mini-batch's resources.

    Every GPU is as busy as the busiest, and so is every NIC with its driver.
    """
    cluster = point.cluster

    def total(*names: str, parts: int = cluster.endpoints) -> float:
        return parts / samples * sum(us for name, us in busy.items() if name in names)

    pcie = total("pcie", "pcie_in", "pcie_out")
    own = devices_of(cluster).copies.pcie
    return {"gpu_us": total("gpu"), "pcie_us": pcie, "pcie_bytes": pcie * own.bandwidth_gb_s * 1e3,
            "cpu_us": total("cpu") + total("driver", parts=cluster.all_nics),
            "nic_us": total("nic", parts=cluster.all_nics)}


def _tuples(value: Any) -> Any:
    """Return a value with JSON's lists converted to tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
