"""EN against FS and the GPU baselines: by kernel level, by option, and with changes for all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from host.devices.dense_work import LEVELS
from host.toml.profile import profile_names
from sim.evaluation.fields import PER_GRAPH, WORKLOADS
from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import BASES, Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.row import row_at
from sim.page.rows import Row

__all__ = ["CHANGES", "EXHIBIT", "MEASURED", "NOTHING", "OPTIONS", "TENSOR_CORES", "Option"]

_SOFTWARE, _LEVEL = "tuned", 2
_SYSTEMS = ("en", "fs", *BASES)

NOTHING = {"ring": "false", "reads": "false", "completion": "false", "deliver": "interaction",
           "copied_rows": "0", "merge": "false", "dense": "false", "sizes": "false",
           "patient": "false"}
"""EN with all options off: the paper's full system without the graph algorithm."""

_SINGLE = {"per_graph": 1}
"""A graph for each mini-batch."""


@dataclass(frozen=True)
class Option:
    """An option of EN.

    Members
    -------
    without, alone: options that EN is given in the ablation without it, and with it alone besides
        `NOTHING`; None leaves the choice to EN.
    datasets: its data sets, all by default. training: whether training has it too.
    of_all: whether it is an option of every system, such as several mini-batches per graph.
    """

    name: str
    without: Mapping[str, str]
    alone: Mapping[str, str | None] = field(default_factory=dict)
    training: bool = False
    datasets: tuple[str, ...] = ()
    of_all: bool = False


OPTIONS = (
    Option("request lists in a ring", {"ring": "false"}, {"ring": "true"}, True),
    Option("completions in place of waits", {"completion": "false"},
           {"completion": "true", "dense": "true"}, True),
    Option("each different vector once", {"deliver": "pooled"},
           {"deliver": "unique"}, True),
    Option("vectors in place of interaction results", {"deliver": "interaction"},
           {"deliver": "pooled"}),
    Option("copies of small tables", {"copied_rows": "0"},
           {"deliver": "pooled", "copied_rows": None}),
    Option("requester merge", {"merge": "false"}, {"merge": "true"}, True),
    Option("larger buffers", {"sizes": "false"}, {"sizes": "true"}, True, ("terabyte",)),
    Option("several mini-batches in a graph", {}, of_all=True),
)
"""Rows of the table. NICs that read rows themselves are not a row, because on the GPU of these
tables they do not see all rows."""

CHANGES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("one thread of each host", {"fixed": ("threads=1",)}),
    ("one communicator of NCCL", {"fixed": ("communicators=1",)}),
    ("one thread and one communicator", {"fixed": ("threads=1", "communicators=1")}),
    ("a graph for each mini-batch", _SINGLE),
    ("a call of NCCL for each mini-batch of a graph", {"fixed": ("one_collective=false",)}),
    ("one mini-batch in flight", {"in_flight": 1}),
)
"""Changed assumptions for EN and the baselines alike, with the fields of a point."""

TENSOR_CORES = "products on tensor cores"
"""Change to a GPU with products on tensor cores, whose profile name ends in ``_mixed``. For
Terabyte, whose MLPs are the bottleneck; other operations take the same time."""

MEASURED = ("a measured H100 and its host's calls", {"gpu": "gpu_h100", "software": "tuned_h100"})
"""Change to a measured GPU and its host's measured times of CUDA calls. PCIe, network and NCCL do
not change."""

_RELAUNCHED = {"relaunch": "true"}


def _given(options: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in options.items() if value is not None)


@dataclass(frozen=True)
class _Case:
    """A row of a table: EN's point, its name, and the fields of the compared points."""

    name: str
    own: Point
    fields: Mapping[str, Any]


def _cases(setting: Setting) -> Iterator[_Case]:
    """Yield all rows: points of EN, FS and the baselines."""
    if _SOFTWARE not in setting.softwares:
        return
    for dataset, workload in product(setting.datasets, WORKLOADS):
        point = partial(_point, setting, dataset, workload)
        for level, system in product(LEVELS, _SYSTEMS):
            yield _Case(f"{_label(system)}, kernels L{level}", point(system, kernels=level),
                        {"kernels": level})
        for option in OPTIONS:
            if dataset not in (option.datasets or (dataset,)) or (
                    workload == "training" and not option.training):
                continue
            yield _Case(f"EN without {option.name}", point("en", fixed=_given(option.without), **(
                _SINGLE if option.of_all else {})), {})
            yield _Case(f"nothing but {option.name}", point("en", fixed=_given(
                _alone(option.alone, workload)), **({} if option.of_all else _SINGLE)), {})
        yield _Case("EN with nothing",
                    point("en", fixed=_given(_alone({}, workload)), **_SINGLE), {})
        if workload == "training":
            continue
        for level in (_LEVEL, max(LEVELS)):
            yield _Case(f"EN, relaunched by the GPU, kernels L{level}",
                        point("en", fixed=_given(_RELAUNCHED), kernels=level), {"kernels": level})
            for name, fields in _changes(setting, dataset):
                for system in ("en", "bl-tuned"):
                    both = {"kernels": level, **fields}
                    yield _Case(f"{_label(system)}, {name}, kernels L{level}",
                                point(system, **both), both)


def _changes(setting: Setting, dataset: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    mixed = f"{setting.gpu}_mixed"
    if dataset != "terabyte" or mixed not in profile_names("gpu_"):
        return (*CHANGES, MEASURED)
    return (*CHANGES, MEASURED, (TENSOR_CORES, {"gpu": mixed}))


def _alone(options: Mapping[str, str | None], workload: str) -> Mapping[str, str | None]:
    """Return EN's options with these alone; training requires vectors."""
    nothing = NOTHING if workload == "inference" else NOTHING | {"deliver": "pooled"}
    return nothing | dict(options)


def _label(system: str) -> str:
    return system.upper() if system in ("en", "fs") else system


@dataclass(frozen=True)
class _En(Table):
    """EN against the baselines."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points of all rows, and the compared points."""
        found = list(_cases(setting))
        return list(dict.fromkeys([each.own for each in found] + [
            _base(setting, each, base) for each in found for base in BASES]))

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return times, the speedup over each baseline with the same change, and the bottleneck."""
        rows = []
        for case in _cases(setting):
            own, workload = case.own, case.own.workload.workload

            def row(metric: str, value: float | None, unit: str, case=case) -> None:
                rows.append(row_at(case.own, case.name,
                                   f"{case.own.workload.workload}_{metric}", value, unit))

            for metric in ("interval_us", "service_us"):
                row(metric, results.value(own, metric), "us")
            for base in BASES:
                other = _base(setting, case, base)
                if other == own:
                    continue
                row(f"speedup_vs_{base}", speedup(JUDGED[workload], *(
                    results.value(point, JUDGED[workload]) for point in (own, other))), "x")
                row(f"service_speedup_vs_{base}", speedup("service_us", *(
                    results.value(point, "service_us") for point in (own, other))), "x")
            outcome = results.get(own)
            busy = (outcome.metrics or {}).get("busy_us") if outcome else None
            if busy:
                name = max(busy, key=busy.__getitem__)
                row(f"most_busy_{name}", busy[name], "us")
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return descriptions of the rows."""
        return [("EN", "the fastest options at each point; in a row without an option, EN chooses "
                 "the others again; a row with nothing but an option has only that option"),
                ("relaunched by the GPU", "the resident kernel launches a mini-batch's graphs; "
                 "unverified, so no other row uses it"),
                ("most busy", "the bottleneck: the resource that a mini-batch keeps busy longest"),
                ("graphs", "of the fastest number of mini-batches for each system, of "
                 f"{', '.join(map(str, PER_GRAPH))}; one for bl-paper, which is not tuned"),
                ("changes", "the same for EN and its baselines")]


def _point(setting: Setting, dataset: str, workload: str, system: str, **fields: Any) -> Point:
    software = fields.pop("software", _SOFTWARE)
    return setting.point(dataset, system, workload, software, **{
        "kernels": _LEVEL, "per_graph": None} | fields)


def _base(setting: Setting, case: _Case, base: str) -> Point:
    of = case.own.workload
    return _point(setting, of.dataset, of.workload, base, **case.fields)


EXHIBIT = _En("en", "EN, the host out of the loop, tuned software",
              about="EN against the paper's full system and the GPU baselines.")
