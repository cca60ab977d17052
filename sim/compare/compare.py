"""Measurement of every system on one model, cluster and data."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from host.model import Model
from host.systems.devices import profiles_of
from host.timing.cluster import Cluster as ClusterFile
from host.toml.profile import load_profile, profile_hash
from sim.compare.reason import Counts, reason_of
from sim.evaluation.fields import mini_batch_of
from sim.evaluation.measure import measure_system
from sim.evaluation.point import Point
from sim.evaluation.search import Built, Site
from sim.evaluation.systems import canonical, fixed_for, system_of
from sim.job.memory import node_bytes

__all__ = ["SCHEMA", "Request", "compare"]

SCHEMA = "embernic/compare/1"

_KEYS = 300_000
"""Keys of the measured mini-batches, about: fewer mini-batches of many keys are measured."""
_FEWEST, _MOST = 2, 32


@dataclass(frozen=True)
class Request:
    """A comparison.

    model: name of a data set of the paper, or another model with the rows of its samples.
    cluster: description of the cluster. nodes: nodes, in place of the cluster's.
    mini_batch: samples of a global mini-batch.
    data, format: files and their format; empty for the generator.
    placement: placement of the tables. training: whether steps train.
    systems: names of the systems. measured: mini-batches that are measured. seed: of all draws.
    wire: shortest format of a value between nodes that a system may choose.
    fixed: ``name=value`` of options, each for the systems that have it.
    """

    model: Model | str
    cluster: ClusterFile
    nodes: int
    mini_batch: int | None
    data: tuple[str, ...]
    format: str | None
    placement: str
    training: bool
    systems: tuple[str, ...]
    measured: int | None
    seed: int
    wire: str = "float32"
    fixed: tuple[str, ...] = ()

    def points(self, model: Model) -> list[Point]:
        """Return a point for each system. Raises ``ValueError`` for an unknown system or option."""
        workload = "training" if self.training else "inference"
        size = self.mini_batch or mini_batch_of(self.model)
        count = self.measured or int(np.clip(_KEYS // max(1, int(size * model.keys)), _FEWEST,
                                             _MOST))
        common = {
            "dataset": self.model, "workload": workload, "mini_batch": size, "seed": self.seed,
            "data": self.data, "format": self.format, "warmup": count, "measured": count,
            "nodes": self.nodes, "placement": self.placement, "software": self.cluster.software,
            "gpu": self.cluster.gpu.name, "network": self.cluster.network.name,
            "link": self.cluster.gpu_link and self.cluster.gpu_link.name,
            "local_cache": None, "remote_cache": None, "in_flight": None, "per_graph": None,
            "rdma": self.cluster.rdma, "wire": self.wire}
        found = []
        for name in self.systems:
            kind = system_of(canonical(name, workload)[0])
            own = kind.for_model(model, workload)
            given = {each.partition("=")[0] for each in self.fixed}
            own["fixed"] = (*fixed_for(kind.name, self.fixed), *(
                each for each in own.get("fixed", ()) if each.partition("=")[0] not in given))
            graph = {"batching": "graph"} if canonical(name, workload)[1] else {}
            found.append(Point.named(common=common, **own, **graph))
        return found

    def notes(self, points: list[Point]) -> list[str]:
        """Return a note on each option that only systems without NICs have."""
        some = [name for name, point in zip(self.systems, points) if not point.kind.has_nics]
        if self.wire == "float32" or len(some) == len(points):
            return []
        return [f"{self.wire} between nodes is available to {', '.join(some) or 'no system'} only: "
                "NICs send float32"]


def compare(request: Request, model: Model, progress: Callable[[str], None] | None = None) -> dict:
    """Measure each system with its best options.

    Parameters
    ----------
    request: systems and setting. model: model of the samples.
    progress: called with the name of each system before it is measured.

    Returns
    -------
    ``schema``, ``version``, ``profiles`` (name to hash), ``model``, ``cluster``, ``nodes``,
    ``mini_batch`` (samples), ``workload``, ``source`` of the samples, ``wire``, ``fixed``,
    ``keys`` and ``bags`` per sample, ``foreign_bags`` and ``foreign_rows`` (distinct) of a
    mini-batch, ``reason`` (one sentence), ``notes``, and ``systems``, fastest first:

    ``system``, ``interval_us`` (from one mini-batch to the next), ``service_us`` (one alone),
    ``bottleneck`` (resource), ``bottleneck_us`` (its busy time per mini-batch, a lower bound of the
    interval), ``network_bytes_per_sample``, ``gpu_memory_bytes`` (of the fullest node),
    ``samples_per_second``, ``options`` (chosen), and ``why`` (None, or the reason why the system
    cannot be built; all else is then None).
    """
    points = request.points(model)
    rows, counts, source, notes, size = [], None, "", request.notes(points), 0
    for name, point in zip(request.systems, points):
        if progress:
            progress(name)
        site = Site.of(point)
        if counts is None:
            counts, source, size = Counts.of(site.work.plain), site.trace.source, \
                site.trace.mini_batch
            notes += site.trace.notes
        rows.append(_row(name, site, point, model, request.cluster.gpu_memory_bytes))
    assert counts is not None  # there is at least one system
    rows.sort(key=lambda row: row["interval_us"] or float("inf"))
    cluster = request.cluster
    return {
        "schema": SCHEMA, "version": version("embernic"),
        "profiles": {name: profile_hash(load_profile(name, kind)) for name, kind in profiles_of(
            cluster.software, cluster.gpu.name, cluster.gpu_link and cluster.gpu_link.name,
            cluster.network.name).items()},
        "model": model.name, "cluster": cluster.name, "nodes": request.nodes,
        "mini_batch": size, "workload": "training" if request.training else "inference",
        "source": source, "wire": request.wire, "fixed": list(request.fixed),
        **counts.to_json(size), "reason": reason_of(rows, counts),
        "notes": notes, "systems": rows}


def _row(name: str, site: Site, point: Point, model: Model, memory: int) -> dict:
    """Return the row of a system on GPUs with ``memory`` bytes each."""
    row: dict = {"system": name, **dict.fromkeys((
        "interval_us", "service_us", "bottleneck", "bottleneck_us", "network_bytes_per_sample",
        "gpu_memory_bytes", "samples_per_second", "options"))}
    try:
        found, built = measure_system(point)
    except ValueError as error:
        return row | {"why": str(error)}
    if built is None:
        return row | {"why": found["why"]}
    held = _memory(site, built, model, point)
    if held > memory:
        return row | {"why": f"bytes of a node must be at most the {memory:,} of GPU memory, "
                             f"not {held:,}: use more nodes or another placement"}
    busy = found["busy_us"]
    bottleneck = max(busy, key=lambda each: busy[each]) if busy else None
    traffic = found["traffic"]["total"]["bytes"] if found["traffic"] else 0.0
    return row | {
        "interval_us": found["interval_us"], "service_us": found["service_us"],
        "bottleneck": bottleneck, "bottleneck_us": bottleneck and busy[bottleneck],
        "network_bytes_per_sample": traffic / found["mini_batch"],
        "gpu_memory_bytes": held,
        "samples_per_second": found["samples_per_second"],
        "options": _options(found, built), "why": None}


def _memory(site: Site, built: Built, model: Model, point: Point) -> int:
    """Return the bytes of rows and MLPs of the fullest node, with the copies that were chosen."""
    copied = getattr(built.tuning, "copied_rows", point.system.copied_rows)
    plan = site.work.one_copied(copied, 0).plan
    return max(node["bytes"] for node in node_bytes(model, plan, "none"))


def _options(found: dict, built: Built) -> list[str]:
    """Return the chosen options in words."""
    return [f"{found['in_flight']} in flight", f"{found['per_graph']} per graph", *built.notes]
