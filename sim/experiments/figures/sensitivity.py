"""Sensitivity of the full system's speedup to every uncertain constant and to our choices."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.row import Row
from sim.experiments.sensitivity.constants import uncertain

__all__ = ["BASE_OF", "FACTORS", "Change", "Knob", "Swing", "knobs", "pairs", "sensitivity_points",
           "sensitivity_rows", "swings", "width"]

FACTORS = {"halved": 0.5, "doubled": 2.0}

BASE_OF = {"eager": "bl-paper", "tuned": "bl-tuned"}
"""Baseline of a software profile."""

_UNUSED = {"eager": ("cpu_", "nccl_"), "tuned": ("cpu_", "mpi_")}
"""Name prefixes of profiles that neither the full system nor its baseline is charged: collectives
of the other library, and CPU profiles."""

_MINI_BATCHES = 16
"""Most measured mini-batches, after equally many of warm-up; enough to detect differences."""

_PLACEMENTS = ("rows", "row")
_DEPTHS = (1, 4)
_WINDOWS = (4, 64)
_SEEDS = 5
_LEVELS = {"eager": (1, 2, 3), "tuned": (0, 1, 3)}
"""Kernel levels other than the software profile's own."""

Fields = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Change:
    """Another value: ``label`` in words, and the ``fields`` of its points."""

    label: str
    fields: Fields


@dataclass(frozen=True)
class Knob:
    """A constant or a choice to change.

    Members
    -------
    name: ``profile.constant``, or the name of a choice. status: evidence for a constant; empty for
        a choice.
    changes: its other values. ground: fields of the compared points, if they differ from the
        setting.
    """

    name: str
    status: str
    changes: tuple[Change, ...]
    ground: Fields = ()


@dataclass(frozen=True)
class Swing:
    """Effect of a knob on a speedup: ``values`` by label of a change, None if not measured."""

    knob: Knob
    values: dict[str, float | None]

    @property
    def name(self) -> str:
        """Name of the knob."""
        return self.knob.name

    @property
    def known(self) -> dict[str, float]:
        """The values that were measured."""
        return {label: value for label, value in self.values.items() if value is not None}


def pairs(setting: Setting) -> list[tuple[str, str]]:
    """Return the swept cases: software profile and workload."""
    return [(software, workload) for software in setting.softwares for workload in JUDGED]


def knobs(setting: Setting, dataset: str, software: str, workload: str) -> list[Knob]:
    """Return every uncertain constant that the full system or its baseline is charged, and our
    choices: placement, depth, host threads, communicators, window, kernel level, seed."""
    found = [Knob(name, constant.status, tuple(
        Change(label, (("scaled", ((name, factor),)),)) for label, factor in FACTORS.items()))
        for name, constant in uncertain([software], setting.gpu, _UNUSED[software]).items()]
    return [*found, *_choices(setting, dataset, software, workload)]


def _choices(setting: Setting, dataset: str, software: str, workload: str) -> Iterator[Knob]:
    yield Knob("placement", "", tuple(Change(placement, (("placement", placement),))
                                      for placement in _PLACEMENTS))
    if workload == "inference":
        yield Knob("in flight", "", tuple(Change(f"{depth}", (("in_flight", depth),))
                                          for depth in _DEPTHS))
        for name in ("threads", "communicators") if software == "tuned" else ():
            yield Knob(name, "", (Change("1", (("fixed", (f"{name}=1",)),)),))
    yield Knob("kernels", "", tuple(Change(f"L{level}", (("kernels", level),))
                                    for level in _LEVELS[software]))
    # Whole windows: the trace of all of them is as long as the longest one requires.
    size, longest = setting.mini_batch(dataset), max(_WINDOWS)
    whole = (("warmup", longest), ("measured", longest))
    yield Knob("window", "", tuple(Change(f"{window}", (*whole, ("window", window * size)))
                                   for window in _WINDOWS), whole)
    yield Knob("seed", "", tuple(Change(f"{seed}", (("seed", seed),)) for seed in range(
        setting.seed + 1, setting.seed + _SEEDS)))


def sensitivity_points(setting: Setting) -> list[Point]:
    """Return the points of the sweep."""
    return [point for dataset in setting.datasets for software, workload in pairs(setting)
            for fields in ((), *(fields for knob in knobs(setting, dataset, software, workload)
                                 for fields in (knob.ground, *(change.fields
                                                               for change in knob.changes))))
            for point in _both(setting, dataset, software, workload, fields)]


def swings(setting: Setting, results: Results, dataset: str, software: str,
           workload: str) -> tuple[float | None, list[Swing]]:
    """Return the nominal speedup of FS, and its speedup with each knob turned, the strongest first.

    If a change has its own ground, it counts as a factor on that ground.
    """
    as_is = _speedup(setting, results, dataset, software, workload, ())
    found = []
    for knob in knobs(setting, dataset, software, workload):
        ground = _speedup(setting, results, dataset, software, workload, knob.ground)
        values: dict[str, float | None] = {}
        for change in knob.changes:
            value = _speedup(setting, results, dataset, software, workload, change.fields)
            values[change.label] = (value * as_is / ground if value and as_is and ground else None)
        found.append(Swing(knob, values))
    return as_is, sorted(found, key=lambda swing: (-width(swing, as_is), swing.name))


def sensitivity_rows(setting: Setting, results: Results) -> list[Row]:
    """Return the values of the sweep as rows of a table."""
    rows = []
    for dataset in setting.datasets:
        for software, workload in pairs(setting):
            fs, base = _both(setting, dataset, software, workload, ())
            as_is, changed = swings(setting, results, dataset, software, workload)
            for name, value in (("as it is", as_is),
                                *((f"{swing.name} {label}", value) for swing in changed
                                  for label, value in swing.values.items())):
                rows.append(Row.at(fs, "FS", f"{workload}_speedup_vs_{base.kind.name} [{name}]",
                                   value, "x"))
    return rows


def _both(setting: Setting, dataset: str, software: str, workload: str,
          fields: Fields) -> tuple[Point, Point]:
    """Return the points of the full system and of its baseline, which forms no windows."""
    few = {name: min(_MINI_BATCHES, getattr(setting, name)) for name in ("warmup", "measured")}
    fs, base = (
        setting.point(dataset, system, workload, software, **few | {
            name: value for name, value in fields if system == "fs" or name != "window"})
        for system in ("fs", BASE_OF[software]))
    return fs, base


def _speedup(setting: Setting, results: Results, dataset: str, software: str, workload: str,
             fields: Fields) -> float | None:
    metric = JUDGED[workload]
    return speedup(metric, *(results.value(point, metric)
                             for point in _both(setting, dataset, software, workload, fields)))


def width(swing: Swing, as_is: float | None) -> float:
    """Return the largest effect of a knob on the speedup."""
    return max((abs(value - as_is) for value in swing.known.values() if as_is is not None),
               default=0.0)
