"""Mini-batches of a point, measured: their steps, and what a sample costs.

The only file of this folder that knows how points are measured.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from host.systems import Stage, Step, schedule
from sim.evaluation.fields import Workload, devices_of
from sim.evaluation.measure import busy_us, measure_system
from sim.evaluation.nic import cache_rows, reaching
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from sim.evaluation.trace import plan_of, trace_of

__all__ = ["COSTS", "WINDOW", "MiniBatches", "finished_us", "measured", "point_of"]

WINDOW = 16
"""Mini-batches of the graph algorithm's window."""

COSTS = ("gpu_us", "pcie_us", "pcie_bytes", "network_bytes", "cpu_us", "nic_us")
"""What a sample takes of the whole cluster, were all nodes as busy as the busiest: time of a GPU,
counted by the multiprocessors that are held; time and bytes of PCIe, both directions; bytes on the
network, of all nodes; time of the hosts' threads; time of a NIC."""

_MEASURED = 2 * WINDOW
_WARMUP_SAMPLES = 2048
"""At least so many samples, and a window, fill the caches before mini-batches are measured."""


def point_of(mini_batch: int, graph: bool, system: str, **fields: Any) -> Point:
    """Return the point of mini-batches of that many samples, formed by the graph algorithm or in
    order of arrival; ``fields`` are those of a :class:`Point`, as far as the system has them.

    Raises ``ValueError`` as a point does.
    """
    warmup = WINDOW * max(1, ceil(_WARMUP_SAMPLES / (WINDOW * mini_batch)))
    return Point.named(system, fields, mini_batch=mini_batch, warmup=warmup, measured=_MEASURED,
                       batching="graph" if graph else "file")


@dataclass(frozen=True, eq=False)
class MiniBatches:
    """Mini-batches of one size, formed in one way, on one system.

    Members
    -------
    size: samples of each. graph: whether the graph algorithm formed them; their steps are then
        those of whole windows, one after the other.
    steps: of each measured mini-batch. least_us: the time of the fastest of them alone.
    interval_us: from one to the next with as many as possible in flight.
    per_sample: what a sample costs, see `COSTS`, in the mean.
    """

    size: int
    graph: bool
    steps: list[Step]
    least_us: float
    interval_us: float
    per_sample: Mapping[str, float]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "MiniBatches":
        """Return the mini-batches of what :func:`measured` gave."""
        steps = [Step([Stage(**{name: _tuples(value) for name, value in stage.items()})
                       for stage in stages]) for stages in found["steps"]]
        return cls(found["mini_batch"], found["graph"], steps, found["least_us"],
                   found["interval_us"], found["per_sample"])


def measured(point: Point, runs: Store | None = None) -> dict:
    """Measure the mini-batches of a point and return plain values.

    The caches have the rows that they have at the reference mini-batch of the data set, where
    shares are those of the point: a system does not change its caches with its mini-batch. Without
    so many keys in the trace, all of them fit.

    ``applicable``, ``why``, ``mini_batch`` (fewer samples than asked for where a file is short),
    ``graph``, ``source``, ``notes``; and, None where not applicable, ``service_us``, ``least_us``,
    ``interval_us``, ``steps`` and ``per_sample``, see `COSTS`.
    """
    point = _with_reference_caches(point)
    found, system = measure_system(point, runs)
    kept = {name: found[name] for name in ("applicable", "why", "mini_batch", "source", "notes",
                                           "service_us", "interval_us")}
    kept["graph"] = point.workload.batching == "graph"
    if system is None:
        return kept | dict.fromkeys(("steps", "least_us", "per_sample"))
    steps, traffic = system.steps, found["traffic"]
    return kept | {
        "least_us": min(float(schedule([step]).finished[0]) for step in steps),
        "interval_us": system.interval_us,
        "steps": [[asdict(stage) for stage in step.stages] for step in steps],
        "per_sample": _costs(busy_us(steps), point.cluster.nodes / found["mini_batch"],
                             devices_of(point.cluster).pcie.bandwidth_gb_s * 1e3) | {
            "network_bytes": traffic["total"]["bytes"] / found["mini_batch"] if traffic else 0.0}}


def finished_us(steps: list[Step], ready: list[float], in_flight: int) -> Any:
    """Return when each step ends that is ready at a time, float64 ``[steps]``."""
    return schedule(steps, in_flight, ready).finished


def _costs(busy: Mapping[str, float], nodes_per_sample: float, bytes_per_us: float) -> dict:
    """Return all `COSTS` but the network's, of the busy times of a mini-batch's resources."""
    def total(*names: str) -> float:
        return nodes_per_sample * sum(us for name, us in busy.items() if name in names)

    pcie = total("pcie", "pcie_in", "pcie_out")
    return {"gpu_us": total("gpu"), "pcie_us": pcie, "pcie_bytes": pcie * bytes_per_us,
            "cpu_us": total("cpu", "driver"), "nic_us": total("nic")}


def _with_reference_caches(point: Point) -> Point:
    """Return the point with the rows of the reference mini-batch as shares of its own trace."""
    shares = {name: getattr(point.system, name) for name in ("local_cache", "remote_cache")}
    if not any(shares.values()):  # None is all rows of the preset, 0 is none
        return point
    base = point.changed(mini_batch=None, batching="file", window=None, warmup=Workload.warmup,
                         measured=Workload.measured)
    rows, _ = cache_rows(base, base.kind.nics(base), trace_of(base.workload))
    trace = trace_of(point.workload)
    reach = reaching(trace, plan_of(point, trace))
    return point.changed(**{name: min(1.0, (rows[name] or 0) / reach[name])
                            for name, share in shares.items() if share and reach[name]})


def _tuples(value: Any) -> Any:
    """Return what JSON made of tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
