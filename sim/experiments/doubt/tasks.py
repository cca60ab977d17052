"""What a sweep measures of a Monte Carlo: chunks of draws, and how good their interpolation is."""

from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from sim.experiments.doubt.compose import interval_of, source_of, tuning_of
from sim.experiments.doubt.design import scaled_by
from sim.experiments.doubt.draws import drawn
from sim.experiments.doubt.nics import Interpolated, sets_of
from sim.experiments.points.point import Point
from sim.experiments.points.task import Task
from sim.files.store import Store

__all__ = ["Draws", "LeftOut"]

_COMPOSED = 70.0
"""Samples through modelled NICs in whose time a mini-batch of a step is put together, for each
sample: about, since it does not depend on the samples."""


@dataclass(frozen=True)
class _OfDraws(Task):
    """What draws of one workload and software profile have in common.

    Members
    -------
    full: the full system as it is. sets: points whose NICs are run, see `design`.
    data: files of the samples, by which a store tells changed ones.
    """

    full: Point
    sets: tuple[Point, ...]
    data: tuple[str, ...]

    @property
    def dataset(self) -> str:
        """Data set of the points."""
        return self.full.dataset


@dataclass(frozen=True)
class Draws(_OfDraws):
    """Some of the joint draws: how many times faster the full system is than each baseline.

    Members
    -------
    bases: the baselines as they are. names: constants that are drawn.
    first, count: of the draws. seed: of them.
    """

    bases: tuple[Point, ...]
    names: tuple[str, ...]
    first: int
    count: int
    seed: int

    @property
    def effort(self) -> float:
        """Steps of three systems, put together for each draw."""
        return _COMPOSED * self.count * (1 + len(self.bases)) * self.full.measured

    def in_words(self) -> str:
        """Return which draws these are."""
        return (f"draws {self.first} to {self.first + self.count - 1}, {self.dataset}, "
                f"{self.full.workload}, {self.full.software}")

    def measured(self, runs: Store | None) -> dict:
        """Return ``speedups``: by name of a baseline, one for each draw.

        The search of bl-tuned's options begins at those that it has with the constants as they are.
        """
        nics = _interpolated(self.sets, runs)
        speedups: dict[str, list[float]] = {base.system: [] for base in self.bases}
        near = {base.system: tuning_of(base) for base in self.bases}
        factors = drawn(self.names, self.first + self.count, self.seed)[self.first:]
        for each in factors:
            full, *bases = (scaled_by(point, self.names, each)
                            for point in (self.full, *self.bases))
            own = interval_of(full, nics.parts[0], nics.times(full))
            for base in bases:
                speedups[base.system].append(
                    interval_of(base, near=near[base.system]) / own)
        return {"speedups": speedups, "source": source_of(self.full), "notes": []}


@dataclass(frozen=True)
class LeftOut(_OfDraws):
    """How far the interpolation is off at each of its own points that is left out."""

    @property
    def effort(self) -> float:
        """Steps of the full system, put together twice for each point."""
        return _COMPOSED * 2 * len(self.sets) * self.full.measured

    def in_words(self) -> str:
        """Return what is left out."""
        return f"leave-one-out, {self.dataset}, {self.full.workload}"

    def measured(self, runs: Store | None) -> dict:
        """Return ``sets`` of runs, ``axes``, ``median`` and ``most``, the errors of the time from
        one mini-batch to the next, and so of every speedup, and ``nics``: by name of a value of
        NICs the same two for it. All are shares."""
        nics = _interpolated(self.sets, runs)
        errors = []
        for point, part, times in zip(nics.points, nics.parts, nics.left_out()):
            errors.append(abs(interval_of(point, part, times) / interval_of(point, part) - 1))
        return {"sets": sets_of(self.sets), "axes": nics.axes, "source": source_of(self.full),
                "median": median(errors), "most": max(errors), "notes": [],
                "nics": {name: {"median": median(each), "most": max(each)}
                         for name, each in nics.errors().items()}}


@lru_cache(maxsize=4)
def _interpolated(sets: tuple[Point, ...], runs: Store | None) -> Interpolated:
    return Interpolated(sets, runs)
