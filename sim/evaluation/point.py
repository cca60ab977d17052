"""A point of the evaluation, or a task of several points; descriptions and order of measurement."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sim.evaluation.cluster import Cluster
from sim.evaluation.fields import Fields, Workload, dealt
from sim.evaluation.store import Store, plain
from sim.evaluation.system import System
from sim.evaluation.systems import canonical, fixed_for, system_of
from sim.evaluation.trace import trace_key

__all__ = ["Point", "Task", "effort", "in_turn", "in_words"]


@dataclass(frozen=True)
class Point(Fields):
    """A workload, a cluster, and a system with its options. Hashable.

    :meth:`named` takes the fields of all three by name, and accepts the systems ``fs`` and ``ga``.
    Raises ``ValueError`` that names field, value and bound.
    """

    def __post_init__(self) -> None:
        workload, options = self.workload, self.system
        name, _ = canonical(options.system, workload.workload)
        kind = system_of(name)
        if (name, kind.options) != (options.system, type(options)):
            raise ValueError(f"system must be {kind.options.__name__} of the canonical {name}, "
                             f"not {options!r}")
        if workload.training and self.depths != (1,):
            raise ValueError(f"in_flight must be 1 in training, not {options.in_flight!r}")
        if not self.flights:
            raise ValueError(f"per_graph must be at most {self.most_per_graph} here, "
                             f"not {options.per_graph!r}")
        if self.cluster.nodes < kind.least_nodes:
            raise ValueError(f"nodes must be at least {kind.least_nodes} of {name}, "
                             f"not {self.cluster.nodes!r}")
        if workload.training and options.copied_rows:
            raise ValueError(f"copied_rows must be 0 in training, not {options.copied_rows!r}")
        if workload.training and options.owner_tables and "sc" not in kind.parts:
            raise ValueError(f"owner_tables must be empty in training without NICs that take "
                             f"gradients (sc), not {options.owner_tables!r}")
        if options.sampled is not None and (workload.training
                                            or options.sampled > workload.samples):
            raise ValueError(f"sampled must be at most the {workload.samples} samples of a "
                             f"mini-batch, and None in training, not {options.sampled!r}")
        kind.check(self)

    @property
    def kind(self) -> System:
        """The system."""
        return system_of(self.system.system)

    @property
    def label(self) -> str:
        """Display name, such as ``BL``, ``GA+LC`` or ``FS``."""
        system, batching = self.kind, self.workload.batching
        full, _ = canonical("fs", self.workload.workload)
        if batching == "graph" and system.name == full:
            return "FS"
        if batching == "file" or (batching == "graph" and system.graph):
            return system.label
        return f"{'GA' if batching == 'graph' else batching}+{system.label}"

    @classmethod
    def named(cls, system: str, common: dict | None = None, **own: Any) -> "Point":
        """Return the point of a system whose name may contain ``ga`` or be ``fs``.

        With ``ga``, the graph algorithm forms the mini-batches unless ``batching`` is given.

        ``common``: fields of many points; fields, and fixed options, that this point does not have
        are ignored.
        ``own``: fields that this point must have. Caches that the system does not have in the
        workload get 0 rows.
        """
        workload = own.get("workload", Workload.workload)
        name, graph = canonical(system, workload)
        kind = system_of(name)
        parts = {"workload": Workload, "cluster": Cluster, "system": kind.options}
        found = dealt(parts, own | {"system": name}, {
            "batching": "graph" if graph else Workload.batching} | (common or {}))
        if "fixed" not in own and "fixed" in found["system"]:
            found["system"]["fixed"] = fixed_for(name, found["system"]["fixed"])
        there = kind.parts_in(workload)
        if kind.has_nics:
            found["system"] |= {cache: 0.0 for cache, part in (
                ("local_cache", "lc"), ("remote_cache", "rc")) if part not in there}
        return cls(*(part(**found[name]) for name, part in parts.items()))

    def to_json(self) -> dict:
        """Return the fields of all parts as plain values."""
        return plain(asdict(self.workload) | asdict(self.cluster) | asdict(self.system))


class Task(ABC):
    """Work of an evaluation on more than one point.

    A subclass is a frozen dataclass of plain values and points, which are its key in a store. A
    sweep starts tasks after all points, because they share NIC runs.
    """

    @property
    @abstractmethod
    def workload(self) -> Workload:
        """Workload of its points."""

    @property
    @abstractmethod
    def effort(self) -> float:
        """Work, in samples that pass modelled NICs."""

    @abstractmethod
    def measured(self, runs: Store | None) -> dict:
        """Return its metrics as plain values, ``source`` and ``notes`` included.

        ``runs``: store of NIC runs; the metrics do not depend on it.
        """

    @abstractmethod
    def in_words(self) -> str:
        """Return a description."""


def in_words(point: Point | Task, seed: int | None = None) -> str:
    """Return a one-line description of a point, without values that most points share, such as the
    ``seed``."""
    if isinstance(point, Task):
        return point.in_words()
    workload, cluster, system = point.workload, point.cluster, point.system
    caches = [f"{name} {value}" for name, value in (
        ("local cache", system.local_cache), ("remote cache", system.remote_cache)) if value]
    scaled = [f"{name} x{factor:g}" for name, factor in cluster.scaled]
    return ", ".join([
        point.label, workload.name, workload.workload,
        f"{cluster.nodes} nodes" + f" of {cluster.gpus} GPUs" * (cluster.gpus > 1),
        f"mini-batch {workload.samples}", cluster.software, system.fidelity, *caches, *scaled,
        *([] if seed in (None, workload.seed) else [f"seed {workload.seed}"]), *system.settings,
        *system.fixed])


def in_turn(points: Iterable[Point | Task]) -> list[Point | Task]:
    """Return points in the order of measurement.

    One RTL point of each NIC comes first, so that NICs compile in parallel. The longest points
    follow. Points of one trace are adjacent, because a process caches only a few traces. Tasks come
    last, in the given order.
    """
    given = list(points)
    tasks = [point for point in given if isinstance(point, Task)]
    ordered = sorted((point for point in given if isinstance(point, Point)), key=_turn)
    compiled = {(of.workload.name, "sc" in of.kind.parts and of.workload.workload): of
                for of in reversed(ordered) if of.system.fidelity == "rtl"}
    first = sorted(compiled.values(), key=_turn)
    return [*first, *(point for point in ordered if point not in first), *tasks]


def effort(point: Point | Task) -> float:
    """Return the approximate work of a point, in samples that pass modelled NICs."""
    if isinstance(point, Task):
        return point.effort
    of, rtl = trace_key(point.workload), point.system.fidelity == "rtl"
    samples = of.samples * (of.warmup + of.measured)
    if not point.kind.has_nics:
        return 0.05 * samples
    # Runs with one mini-batch in flight, with several, and with the interaction on the NIC.
    return samples * (2 if point.depths != (1,) else 1) * (25 if rtl else 1)


def _turn(point: Point) -> tuple:
    of = trace_key(point.workload)
    return (point.system.fidelity != "rtl", -(of.warmup + of.measured) * of.samples, repr(of),
            point.cluster.nodes)
