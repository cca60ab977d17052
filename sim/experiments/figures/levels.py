"""Kernel levels: the headlines with more or less kernel fusion, the same for every system."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from host.devices.dense_work import LEVELS
from sim.evaluation.fields import WORKLOADS
from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import BASES, Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.row import row_at
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

_SOFTWARE = "tuned"
"""Software profile with custom kernels; eager software has an operator for each kernel."""

_MEANING = ("one kernel per operator of the framework",
            "activations and bias gradients fused into the matrix products",
            "also one kernel each for interaction, reordering of indices and weight update",
            "also one kernel for an MLP")


@dataclass(frozen=True)
class _Levels(Table):
    """The full system over either baseline at each level."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the full system and the baselines at each level."""
        return [_point(setting, dataset, system, workload, level)
                for dataset, workload, level in _cases(setting) for system in ("fs", *BASES)]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the speedup over each baseline at each level."""
        rows = []
        for dataset, workload, level in _cases(setting):
            own = _point(setting, dataset, "fs", workload, level)
            for base in BASES:
                other = _point(setting, dataset, base, workload, level)
                metric = JUDGED[workload]
                faster = speedup(metric, *(results.value(point, metric) for point in (own, other)))
                rows.append(row_at(own, f"FS, kernels L{level}",
                                   f"{workload}_speedup_vs_{base}", faster, "x"))
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return a description of each level."""
        return [(f"L{level}", text) for level, text in zip(LEVELS, _MEANING)]


def _cases(setting: Setting) -> Sequence[tuple[str, str, int]]:
    if _SOFTWARE not in setting.softwares:
        return []
    return list(product(setting.datasets, WORKLOADS, LEVELS))


def _point(setting: Setting, dataset: str, system: str, workload: str, level: int) -> Point:
    return setting.point(dataset, system, workload, _SOFTWARE, kernels=level)


EXHIBIT = _Levels("levels", "The full system by kernel level, tuned software")
