"""EN beside FS and the GPU baselines: by kernel level, option by option, and under fair changes."""

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
from sim.experiments.figures.row import Row

__all__ = ["CHANGES", "EXHIBIT", "MEASURED", "NOTHING", "OPTIONS", "TENSOR_CORES", "Option"]

_SOFTWARE, _LEVEL = "tuned", 2
_SYSTEMS = ("en", "fs", *BASES)

NOTHING = {"ring": "false", "reads": "false", "completion": "false", "deliver": "interaction",
           "copied_rows": "0", "merge": "false", "dense": "false", "sizes": "false"}
"""EN with none of its options: the paper's full system without the graph algorithm."""

_SINGLE = {"per_graph": 1}
"""A graph for each mini-batch."""


@dataclass(frozen=True)
class Option:
    """An option of EN. ``without``, ``alone``: what EN is given where it is left out, and where it
    alone is there, besides `NOTHING`; a None there leaves the choice to EN. ``datasets``: for which
    it is one, all by default. ``training``: whether training has it too. ``of_all``: whether it is
    an option of every system, several mini-batches in a graph."""

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
"""Each is a row of a table. On the GPU of these tables NICs do not see all rows, so that none reads
them: that is no row."""

CHANGES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("two threads of each host", {"threads": 2}),
    ("two communicators of NCCL", {"communicators": 2}),
    ("two threads and two communicators", {"threads": 2, "communicators": 2}),
    ("a graph for each mini-batch", _SINGLE),
    ("mini-batches of a graph exchange by one call of NCCL", {"grouped": True}),
    ("one mini-batch in flight", {"in_flight": 1}),
)
"""What a sceptic may change for EN and the baselines alike, with the fields of a point."""

TENSOR_CORES = "products on tensor cores"
"""The change to a GPU whose products are on tensor cores: its profile's name ends in ``_mixed``.
For Terabyte, whose MLPs are what binds; what is no product moves bytes and takes as long as before.
"""

MEASURED = ("a measured H100 and its host's calls", {"gpu": "gpu_h100", "software": "tuned_h100"})
"""The change to a GPU whose constants were measured, with the host's times of CUDA's calls there.
PCIe, the network and NCCL stay."""

_RELAUNCHED = {"relaunch": "true"}


def _given(options: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in options.items() if value is not None)


@dataclass(frozen=True)
class _Case:
    """A row of a table: EN's point, under a name, with the fields of the points it is compared to.
    """

    name: str
    own: Point
    fields: Mapping[str, Any]


def _cases(setting: Setting) -> Iterator[_Case]:
    """Yield all points of EN, FS and the baselines that are rows."""
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
            yield _Case(f"EN without {option.name}", point("en", en=_given(option.without), **(
                _SINGLE if option.of_all else {})), {})
            yield _Case(f"nothing but {option.name}", point("en", en=_given(
                _alone(option.alone, workload)), **({} if option.of_all else _SINGLE)), {})
        yield _Case("EN with nothing", point("en", en=_given(_alone({}, workload)), **_SINGLE), {})
        if workload == "training":
            continue
        for level in (_LEVEL, max(LEVELS)):
            yield _Case(f"EN, relaunched by the GPU, kernels L{level}",
                        point("en", en=_given(_RELAUNCHED), kernels=level), {"kernels": level})
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
    """Return what EN is given that has these options alone; in training it needs vectors."""
    nothing = NOTHING if workload == "inference" else NOTHING | {"deliver": "pooled"}
    return nothing | dict(options)


def _label(system: str) -> str:
    return system.upper() if system in ("en", "fs") else system


@dataclass(frozen=True)
class _En(Table):
    """EN against the baselines."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points of all rows, and those that they are compared with."""
        found = list(_cases(setting))
        return list(dict.fromkeys([each.own for each in found] + [
            _base(setting, each, base) for each in found for base in BASES]))

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return times, the speedup over each baseline under the same change, and what binds."""
        rows = []
        for case in _cases(setting):
            own, workload = case.own, case.own.workload.workload

            def row(metric: str, value: float | None, unit: str, case=case) -> None:
                rows.append(Row.at(case.own, case.name,
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
        """Return what the rows are."""
        return [("EN", "the options that are fastest at each point; rows without an option let it "
                 "choose the others again, and rows with nothing but one have it beside none"),
                ("relaunched by the GPU", "the resident kernel launches a mini-batch's graphs; "
                 "unverified, so EN never has it elsewhere"),
                ("most busy", "the resource that a mini-batch keeps busy for longest"),
                ("graphs", "of as many mini-batches as each system is fastest with, of "
                 f"{', '.join(map(str, PER_GRAPH))}; bl-paper, which is not tuned, of one"),
                ("changes", "the same for EN and for the baselines that it is compared with")]


def _point(setting: Setting, dataset: str, workload: str, system: str, **fields: Any) -> Point:
    software = fields.pop("software", _SOFTWARE)
    return setting.point(dataset, system, workload, software, **{
        "kernels": _LEVEL, "per_graph": None} | fields)


def _base(setting: Setting, case: _Case, base: str) -> Point:
    of = case.own.workload
    return _point(setting, of.dataset, of.workload, base, **case.fields)


EXHIBIT = _En("en", "EN, the host out of the loop, tuned software",
              about="EN beside the paper's full system and the GPU baselines.")
