"""Cases of a Monte Carlo in a setting: points, draws and NIC runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sim.evaluation.fields import WORKLOADS, Workload
from sim.evaluation.point import Point
from sim.evaluation.setting import BASES, Setting
from sim.evaluation.systems import EN
from sim.experiments.sensitivity.constants import uncertain
from sim.experiments.sensitivity.design import design
from sim.experiments.sensitivity.tasks import Draws, LeftOut

__all__ = ["CHUNK", "MINI_BATCHES", "Case", "cases_of", "names_of", "sets_by_workload"]

CHUNK = 50
"""Draws that are measured and stored together."""

MINI_BATCHES = 16
"""Most measured mini-batches, after equally many of warm-up: one window."""

_INFERENCE = 5 / 8
"""Share of the NIC runs for inference, which depend on more: interaction and depth."""

_OF_EN = 3 / 8
"""NIC runs of EN, in inference with tuned software, as a share of those of FS."""

_EN_SOFTWARE = "tuned"

_UNCHARGED = ("cpu_",)
"""Name prefixes of profiles that no compared system is charged, because no CPU computes."""


@dataclass(frozen=True)
class Case:
    """Draws of a data set, a workload and a software profile.

    Members
    -------
    full: the full system (paper's or EN) at nominal constants. bases: baselines at nominal
        constants. sets: points whose NICs are run. draws: chunks, in order. left_out: error of the
        interpolation, over all software profiles.
    """

    full: Point
    bases: tuple[Point, ...]
    sets: tuple[Point, ...]
    draws: tuple[Draws, ...]
    left_out: LeftOut

    @property
    def workload(self) -> Workload:
        """Workload of the points."""
        return self.full.workload

    @property
    def points(self) -> tuple[Point, ...]:
        """Points that are measured directly. For EN, only the NIC settings of its nominal choice
        are run; its sample sets add no points."""
        sets = () if self.full.kind.chooses_nics else self.sets
        return (*sets, self.full, *self.bases)


def names_of(setting: Setting, software: str) -> tuple[str, ...]:
    """Return the constants that are drawn for a software profile."""
    return tuple(uncertain([software], setting.gpu, _UNCHARGED))


def sets_by_workload(setting: Setting) -> dict[str, int]:
    """Return the number of NIC runs per workload of the paper's full system; the sum is
    ``setting.nic_sets``."""
    inference = round(setting.nic_sets * _INFERENCE)
    return dict(zip(WORKLOADS, (inference, setting.nic_sets - inference)))


def cases_of(setting: Setting) -> Iterator[Case]:
    """Yield the cases of each data set, workload and software profile, and the cases of EN."""
    for dataset in setting.datasets:
        for workload, sets in sets_by_workload(setting).items():
            yield from _cases(setting, dataset, "fs", workload, setting.softwares, sets)
        if _EN_SOFTWARE in setting.softwares:
            yield from _cases(setting, dataset, EN, "inference", (_EN_SOFTWARE,),
                              round(setting.nic_sets * _OF_EN))


def _cases(setting: Setting, dataset: str, system: str, workload: str,
           softwares: tuple[str, ...], sets: int) -> Iterator[Case]:
    """Yield the cases of a full system, a workload and software profiles that share NIC runs."""
    # EN and its baselines choose the fastest number of mini-batches per graph.
    fields = {"per_graph": None} if system == EN else {}
    full = tuple(_point(setting, dataset, system, workload, software, **fields)
                 for software in softwares)
    names = tuple(names_of(setting, software) for software in softwares)
    shared = _design(full, names, sets, setting.seed)
    for own, of in zip(full, names):
        bases = tuple(_point(setting, dataset, base, workload, own.cluster.software, **fields)
                      for base in BASES)
        draws = tuple(
            Draws(own, shared, bases, of, first, min(CHUNK, setting.draws - first), setting.seed)
            for first in range(0, setting.draws, CHUNK))
        yield Case(own, bases, shared, draws, LeftOut(full[0], shared))


def _point(setting: Setting, dataset: str, system: str, workload: str, software: str,
           **fields: Any) -> Point:
    few = {name: min(MINI_BATCHES, getattr(setting, name)) for name in ("warmup", "measured")}
    return setting.point(dataset, system, workload, software, **few, **fields)


@lru_cache(maxsize=64)
def _design(bases: tuple[Point, ...], names: tuple[tuple[str, ...], ...], sets: int,
            seed: int) -> tuple[Point, ...]:
    return tuple(design(bases, names, sets, seed))
