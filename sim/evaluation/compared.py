"""Systems of one workload, cluster and mini-batch, each measured with its best options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from host.model import Model
from host.placement.deal import PLACEMENTS
from host.systems import POOLS, UPDATES, Workload
from host.systems.devices import profiles_of
from host.timing.cluster import Cluster as ClusterFile
from host.timing.network import MTUS
from host.toml.profile import load_profile, profile_hash
from rtl.config import LANES
from sim.evaluation.cluster import cluster_fields
from sim.evaluation.fields import mini_batch_of
from sim.evaluation.measure import metrics_of
from sim.evaluation.placing import Placed, placed
from sim.evaluation.point import Point
from sim.evaluation.pooling import owner_tables, tables_of
from sim.evaluation.store import Store
from sim.evaluation.systems import FULL, canonical, fixed_for, system_of

__all__ = ["METRICS", "Counts", "Request", "choices", "formed_best", "hashes_of", "options_of",
           "row_of"]

_BEATS = 5_000_000
"""Beats (16 values) of the vectors that NICs look up in a run, about: workloads of many or long
vectors measure fewer mini-batches, and NICs run mini-batches of fewer samples."""
_WARM_KEYS = 300_000
"""Keys after which caches are warm, about: a preset's cache has at most 32,768 rows."""
_FEWEST, _MOST = 2, 16

_FORMED = ("mini-batches by the graph algorithm", "mini-batches in file order")
"""Chosen way to form mini-batches of the paper's full system, in words."""

METRICS = ("interval_us", "service_us", "bottleneck", "bottleneck_us", "utilisation",
           "network_bytes_per_sample", "gpu_memory_bytes", "samples_per_second", "options",
           "tables", "busiest")
"""Metrics of a system, see :func:`row_of`."""


@dataclass(frozen=True)
class Counts:
    """Mean counts of a mini-batch over all nodes.

    lookups: keys. bags: non-empty bags. foreign_bags: bags of other nodes' tables.
    foreign_rows: distinct rows of other nodes in each share, added over the nodes.
    """

    lookups: float
    bags: float
    foreign_bags: float
    foreign_rows: float

    @classmethod
    def of(cls, work: Sequence[Workload]) -> "Counts":
        """Return the means over mini-batches."""
        return cls(*(float(np.mean(values)) for values in zip(*(
            (w.lookups.sum(), w.bags.sum(), _foreign(w.bags), _foreign(w.requested))
            for w in work))))

    @property
    def rows_per_bag(self) -> float:
        """Distinct foreign rows per foreign bag; 0 without foreign bags."""
        return self.foreign_rows / self.foreign_bags if self.foreign_bags else 0.0

    def to_json(self, mini_batch: int) -> dict:
        """Return the counts as plain values, keys and bags per sample."""
        return {"keys": self.lookups / mini_batch, "bags": self.bags / mini_batch,
                "foreign_bags": self.foreign_bags, "foreign_rows": self.foreign_rows}


def _foreign(pairs: np.ndarray) -> int:
    return int(pairs.sum() - np.trace(pairs))


@dataclass(frozen=True)
class Request:
    """A comparison.

    model: name of a data set of the paper or of a model file, or another model with the rows of its
        samples.
    cluster: description of the cluster. nodes: nodes, in place of the cluster's.
    mini_batch: samples of a global mini-batch.
    data, format: files and their format; empty for the generator.
    placement: placement of the tables; None for the fastest of each system.
    training: whether steps train.
    systems: names of the systems. measured: mini-batches that are measured. seed: of all draws.
    wire: shortest format of a value between nodes that a system may choose.
    mtu: bytes of the largest packets between nodes that a system may choose.
    fixed: ``name=value`` of options, each for the systems that have it.
    """

    model: Model | str
    cluster: ClusterFile
    nodes: int
    mini_batch: int | None
    data: tuple[str, ...]
    format: str | None
    placement: str | None
    training: bool
    systems: tuple[str, ...]
    measured: int | None
    seed: int
    wire: str = "float32"
    mtu: int = MTUS[0]
    fixed: tuple[str, ...] = ()

    def points(self, model: Model) -> list[Point]:
        """Return a point for each system. Raises ``ValueError`` for an unknown system or option.

        If no number of mini-batches is given, there are 2 to 16, about `_BEATS`. NICs run
        mini-batches of fewer samples if 2 mini-batches exceed that.
        """
        workload = "training" if self.training else "inference"
        size = self.mini_batch or mini_batch_of(self.model)
        keys = max(1, int(size * model.keys))
        beats = keys * ceil(model.width / LANES)
        count = self.measured or int(np.clip(_BEATS // beats, _FEWEST, _MOST))
        warm = count if self.measured else min(count, _WARM_KEYS // keys)
        halves = 0
        while not self.training and beats >> halves > _BEATS and size >> halves >= 4 * self.nodes:
            halves += 1
        common = {
            "dataset": self.model, "workload": workload, "mini_batch": size, "seed": self.seed,
            "data": self.data, "format": self.format, "warmup": warm, "measured": count,
            **cluster_fields(self.cluster), "nodes": self.nodes, "placement": self.placement,
            "wire": self.wire, "mtu": self.mtu,
            "sampled": size >> halves if halves else None,
            "local_cache": None, "remote_cache": None, "in_flight": None, "per_graph": None}
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

    def notes(self, points: Sequence[Point]) -> list[str]:
        """Return a note on the format of values between nodes, if some systems do not have it."""
        some = [name for name, point in zip(self.systems, points)
                if self.wire in point.kind.wires(point)]
        if self.wire == "float32" or len(some) == len(points):
            return []
        return [f"{self.wire} between nodes is available to {', '.join(some) or 'no system'} only: "
                "other systems send float32"]


def hashes_of(cluster: ClusterFile) -> dict[str, str]:
    """Return the hash of each profile of a cluster."""
    return {name: profile_hash(load_profile(name, kind)) for name, kind in profiles_of(
        **{name: value for name, value in cluster_fields(cluster).items()
           if name not in ("nodes", "gpus", "nics", "rdma")}).items()}


def formed_best(name: str, point: Point, memory: int | None = None,
                runs: Store | None = None) -> Placed:
    """Return a system with its fastest placement and the faster way to form mini-batches.

    The paper's full system uses the graph algorithm only where its threads, and the whole system,
    are faster than in file order. Other placements are tried only if the algorithm is faster with
    the one of file order. A user who adds ``ga`` to a system always gets the algorithm.
    The parameters are those of :func:`sim.evaluation.placing.placed`, and ``name`` of the system.
    """
    if name.lower() != FULL or point.workload.batching == "file":
        return placed(point, memory, runs)
    best = placed(point.changed(batching="file", window=None), memory, runs)
    if best.built is None or replace(best.site, point=point).forming.interval_us >= \
            best.interval_us:
        return best
    # Equal if the point gives the placement.
    for each in dict.fromkeys((point.changed(placement=best.point.cluster.placement), point)):
        formed = placed(each, memory, runs, best.interval_us)
        if formed.interval_us >= best.interval_us:
            break
        best = formed
    return best


def row_of(name: str, point: Point, memory: int, runs: Store | None = None) -> dict:
    """Measure a system with its best options.

    Parameters
    ----------
    name: system, as requested. point: its point; without a placement, the fastest is searched.
    memory: bytes of each GPU's memory. runs: store of NIC runs that points share, or None.

    Returns
    -------
    ``system``, ``interval_us`` (from one mini-batch to the next), ``service_us`` (one alone),
    ``bottleneck`` (resource), ``bottleneck_us`` (its busy time per mini-batch, a lower bound of the
    interval), ``utilisation`` (the bound over the interval), ``network_bytes_per_sample``,
    ``gpu_memory_bytes`` (of the fullest GPU), ``samples_per_second``, ``options`` (chosen),
    ``tables`` and ``busiest`` of a system with NICs (traffic of each table, and of the
    busiest direction, see :func:`sim.evaluation.pooling.tables_of`, with ``us``, the time of its
    data on a link in the row's mini-batch), and ``why`` (None, or the
    limit because of which the system cannot be built; all else is then None).

    Raises ``ValueError`` if the system cannot be measured for any other reason.
    """
    row: dict[str, Any] = {"system": name, **dict.fromkeys(METRICS)}
    own = formed_best(name, point, memory, runs)
    if own.built is None or own.why:
        return row | {"why": own.why}
    found = metrics_of(own.point, own.site, own.built, own.nic)
    tables = _tables(own)
    bottleneck = found["bottleneck"] or dict.fromkeys(("resource", "us", "utilisation"))
    traffic = found["traffic"]["total"]["bytes"] if found["traffic"] else 0.0
    return row | {
        "interval_us": found["interval_us"], "service_us": found["service_us"],
        "bottleneck": bottleneck["resource"], "bottleneck_us": bottleneck["us"],
        "utilisation": bottleneck["utilisation"],
        "network_bytes_per_sample": traffic / found["mini_batch"],
        "gpu_memory_bytes": max(own.held),
        "samples_per_second": found["samples_per_second"],
        "options": options_of(name, own, tables), "why": None} | tables


def _tables(own: Placed) -> dict:
    """Return the traffic of each table of a system with NICs."""
    point, tuning = own.point, own.built and own.built.tuning
    if not point.kind.has_nics or point.cluster.gpus_per_nic > 1:
        return {}
    copied = getattr(tuning, "copied_rows", 0)
    trace, once = own.site.nic_trace, getattr(tuning, "bags_once", False)
    more = once, getattr(tuning, "update", UPDATES[0]), getattr(tuning, "wire", "float32")
    owner = owner_tables(point, trace, getattr(tuning, "pool", POOLS[0]), copied, *more)
    tables, busiest = tables_of(point, trace, owner, copied, *more)
    many = point.workload.samples / trace.mini_batch
    rate = own.site.devices.network.bandwidth_gbit_s / 8 * 1e3
    return {"tables": tables, "busiest": busiest | {"us": many * busiest["bytes"] / rate}}


def options_of(name: str, own: Placed, traffic: Mapping | None = None) -> list[str]:
    """Return the chosen options and remarks of a system in words, the placement last.

    name: system, as requested. own: the system, which can be built. traffic: its traffic by table,
    ``tables`` and ``busiest`` of a row, for the bytes of the busiest link.
    """
    placement, built = own.point.cluster.placement, own.built
    assert built is not None
    pooled = any(table["pool"] == "owner" for table in (traffic or {}).get("tables", ()))
    return [f"{built.in_flight} in flight", f"{built.per_graph} per graph",
            *(own.nic.notes if own.nic else ()), *built.notes,
            *([f"{traffic['busiest']['bytes']:,.0f} B on the busiest link"]
              if traffic and pooled else []),
            *([_FORMED[own.point.workload.batching == "file"]] if name.lower() == FULL else []),
            f"placement {placement if placement in PLACEMENTS else 'as given'}"]


def choices(rows: Sequence[dict]) -> list[str]:
    """Return a line for each row of a system: its options, or the reason why it cannot be built."""
    return [f"{row['system']}: {row['why'] or '; '.join(row['options'])}" for row in rows]
