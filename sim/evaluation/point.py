"""A point of the evaluation, or a task of several; in words, and in the order of measuring."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sim.evaluation.fields import Fields
from sim.evaluation.nic import Nics
from sim.evaluation.store import Store
from sim.evaluation.system import System
from sim.evaluation.systems import canonical, system_of
from sim.evaluation.trace import trace_key

__all__ = ["Point", "Task", "effort", "in_turn", "in_words"]

_RULES = {
    "persistent_gather": "go with a system of GPUs and SmartNICs, not with {system!r}",
    "en": "go with the system en, not with {system!r}",
    "copied_rows": "be 0 in training, of a baseline and of EN, not {value!r} of {system} in "
                   "{workload}"}
"""Fields that not all systems have: a point of another system must leave them as they are."""


@dataclass(frozen=True)
class Point(Fields):
    """What is evaluated: a workload, a cluster and a system. Hashable; :meth:`to_json` and
    :meth:`of` go to JSON and back, :meth:`named` takes the systems ``fs`` and ``ga`` too.

    Members: those of :class:`sim.evaluation.fields.Workload`, ``Cluster`` and ``Options``.

    Raises ``ValueError`` that names field, value and bound.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if (name := canonical(self.system, self.workload))[0] != self.system:
            raise ValueError(f"system must be the canonical {name[0]}, not {self.system!r}")
        system = self.kind
        if self.workload == "training" and self.depths != (1,):
            raise ValueError(f"in_flight must be 1 in training, not {self.in_flight!r}")
        if not self.flights:
            raise ValueError(f"per_graph must be at most {self.most_per_graph} here, "
                             f"not {self.per_graph!r}")
        if self.nodes < system.least_nodes:
            raise ValueError(f"nodes must be at least {system.least_nodes} of {self.system}, "
                             f"not {self.nodes!r}")
        for name, rule in _RULES.items():
            if (value := getattr(self, name)) and not system.has(name, self.workload):
                raise ValueError(f"{name} must {rule}".format(value=value, **vars(self)))
        system.check(self)

    @property
    def kind(self) -> System:
        """The system."""
        return system_of(self.system)

    @property
    def nics(self) -> Nics:
        """What the NICs of its system are."""
        return self.kind.nics(self)

    @property
    def in_graphs(self) -> bool:
        """Whether the system can have several mini-batches in a graph."""
        return self.kind.in_graphs

    @property
    def label(self) -> str:
        """Name for people, such as ``BL``, ``GA+LC`` or ``FS``."""
        system, graph = self.kind, self.batching == "graph"
        full, _ = canonical("fs", self.workload)
        if graph and self.system == full:
            return "FS"
        if self.batching == "file" or (graph and system.graph):
            return system.label
        return f"{'GA' if graph else self.batching}+{system.label}"

    @classmethod
    def named(cls, system: str, **fields: Any) -> "Point":
        """Return the point of a system whose name may have ``ga`` or be ``fs``.

        With ``ga``, mini-batches are formed by the graph algorithm unless ``batching`` is given.
        """
        name, graph = canonical(system, fields.get("workload", "inference"))
        return cls(system=name, **({"batching": "graph"} if graph else {}) | fields)

    @classmethod
    def of(cls, values: dict) -> "Point":
        """Return the point of what :meth:`to_json` gave."""
        lists = {"data": tuple(values.get("data", ())),
                 "settings": tuple(values.get("settings", ())),
                 "en": tuple(values.get("en", ())),
                 "scaled": tuple((name, factor) for name, factor in values.get("scaled", ()))}
        return cls(**values | lists)

    def to_json(self) -> dict:
        """Return the members as plain values."""
        return asdict(self) | {"data": list(self.data), "settings": list(self.settings),
                               "en": list(self.en),
                               "scaled": [list(pair) for pair in self.scaled]}


class Task(ABC):
    """Work of an evaluation that is more than one point.

    A subclass is a frozen dataclass of plain values and points, which are its key in a store. A
    sweep begins tasks after all points, so that runs of NICs that both need are there.
    """

    @property
    @abstractmethod
    def dataset(self) -> str:
        """Data set of the task."""

    @property
    @abstractmethod
    def effort(self) -> float:
        """How long it takes, in samples that run through modelled NICs."""

    @abstractmethod
    def measured(self, runs: Store | None) -> dict:
        """Return its metrics as plain values, ``source`` and ``notes`` among them.

        ``runs``: keeps runs of NICs; it changes no metric.
        """

    @abstractmethod
    def in_words(self) -> str:
        """Return what it is, for people."""


def in_words(point: Point | Task, seed: int | None = None) -> str:
    """Return what is measured in a line, without what most points have in common, such as the
    ``seed``."""
    if isinstance(point, Task):
        return point.in_words()
    caches = [f"{name} {value}" for name, value in (
        ("local cache", point.local_cache), ("remote cache", point.remote_cache)) if value]
    scaled = [f"{name} x{factor:g}" for name, factor in point.scaled]
    return ", ".join([
        point.label, point.dataset, point.workload, f"{point.nodes} nodes",
        f"mini-batch {point.samples}", point.software, point.fidelity, *caches, *scaled,
        *([] if seed in (None, point.seed) else [f"seed {point.seed}"]), *point.settings,
        *point.en])


def in_turn(points: Iterable[Point | Task]) -> list[Point | Task]:
    """Return points in the order in which they are begun.

    First one RTL point for each NIC that has to be compiled, so that the NICs are compiled side by
    side. Then the longest points, so that none is left over at the end; those of one trace follow
    each other, since a process keeps only a few traces. Tasks come last, in the order given: they
    share runs of NICs with points.
    """
    given = list(points)
    tasks = [point for point in given if isinstance(point, Task)]
    ordered = sorted((point for point in given if isinstance(point, Point)), key=_turn)
    compiled = {_built(point): point for point in reversed(ordered) if point.fidelity == "rtl"}
    first = sorted(compiled.values(), key=_turn)
    return [*first, *(point for point in ordered if point not in first), *tasks]


def effort(point: Point | Task) -> float:
    """Return roughly how long a point takes: in samples that run through modelled NICs."""
    if isinstance(point, Task):
        return point.effort
    samples = point.samples * (point.warmup + point.measured)
    if not point.kind.has_nics:
        return 0.05 * samples
    # One mini-batch under way, several, and with the interaction on the NIC.
    return samples * (2 if point.depths != (1,) else 1) * (25 if point.fidelity == "rtl" else 1)


def _turn(point: Point) -> tuple:
    of = trace_key(point)
    return (point.fidelity != "rtl", -(of.warmup + of.measured) * of.samples, repr(of),
            point.nodes)


def _built(point: Point) -> tuple[str, ...]:
    """Return what tells one compiled NIC of an evaluation from another."""
    computes = "sc" in point.kind.parts
    return (point.dataset, point.workload) if computes else (point.dataset,)
