"""The cases of a Monte Carlo: its points, its draws and its sets of runs, in a setting."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sim.experiments.doubt.constants import doubtful
from sim.experiments.doubt.design import design
from sim.experiments.doubt.tasks import Draws, LeftOut
from sim.experiments.points.point import WORKLOADS, Point
from sim.experiments.points.setting import BASES, Setting

__all__ = ["CHUNK", "MINI_BATCHES", "Case", "cases_of", "names_of", "sets_by_workload"]

CHUNK = 50
"""Draws that are measured and kept at once."""

MINI_BATCHES = 16
"""Measured at most, after as many of warm-up: a window, enough to tell differences."""

_INFERENCE = 5 / 8
"""Share of the sets of runs for inference, whose runs depend on more: interaction and depth."""

_UNCHARGED = ("cpu_",)
"""Beginnings of the names of profiles that no compared system is charged: no CPU computes."""


@dataclass(frozen=True)
class Case:
    """Draws of a data set, a workload and a software profile.

    Members
    -------
    full: the full system as it is. bases: the baselines as they are. sets: points whose NICs are
    run. draws: the chunks, in order. left_out: how good the interpolation is, of all software
    profiles alike.
    """

    full: Point
    bases: tuple[Point, ...]
    sets: tuple[Point, ...]
    draws: tuple[Draws, ...]
    left_out: LeftOut

    @property
    def dataset(self) -> str:
        """Data set of the points."""
        return self.full.dataset


def names_of(setting: Setting, software: str) -> tuple[str, ...]:
    """Return the constants that are drawn for a software profile."""
    return tuple(doubtful([software], setting.gpu, _UNCHARGED))


def sets_by_workload(setting: Setting) -> dict[str, int]:
    """Return how many sets of runs each workload may have; all together ``setting.nic_sets``."""
    inference = round(setting.nic_sets * _INFERENCE)
    return dict(zip(WORKLOADS, (inference, setting.nic_sets - inference)))


def cases_of(setting: Setting) -> Iterator[Case]:
    """Yield the cases of each data set, workload and software profile."""
    for dataset in setting.datasets:
        for workload, sets in sets_by_workload(setting).items():
            full = tuple(_point(setting, dataset, "fs", workload, software)
                         for software in setting.softwares)
            names = tuple(names_of(setting, software) for software in setting.softwares)
            shared = _design(full, names, sets, setting.seed)
            for own, of in zip(full, names):
                bases = tuple(_point(setting, dataset, base, workload, own.software)
                              for base in BASES)
                draws = tuple(
                    Draws(own, shared, own.data, bases, of, first,
                          min(CHUNK, setting.draws - first), setting.seed)
                    for first in range(0, setting.draws, CHUNK))
                yield Case(own, bases, shared, draws, LeftOut(full[0], shared, own.data))


def _point(setting: Setting, dataset: str, system: str, workload: str, software: str) -> Point:
    few = {name: min(MINI_BATCHES, getattr(setting, name)) for name in ("warmup", "measured")}
    return setting.point(dataset, system, workload, software, **few)


@lru_cache(maxsize=64)
def _design(bases: tuple[Point, ...], names: tuple[tuple[str, ...], ...], sets: int,
            seed: int) -> tuple[Point, ...]:
    return tuple(design(bases, names, sets, seed))
