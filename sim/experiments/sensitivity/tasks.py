"""Tasks of a Monte Carlo: chunks of draws, and the error of their interpolation."""

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from host.data.contents import contents
from sim.evaluation.fields import Workload
from sim.evaluation.point import Point, Task
from sim.evaluation.store import Store
from sim.experiments.sensitivity.compose import interval_of, settled, source_of, tuning_of
from sim.experiments.sensitivity.design import scaled_by
from sim.experiments.sensitivity.draws import drawn
from sim.experiments.sensitivity.nics import Interpolated, sets_of

__all__ = ["Draws", "LeftOut"]

_COMPOSED = 70.0
"""Effort of composing one step, in samples that pass modelled NICs. Approximate; independent of the
number of samples."""


@dataclass(frozen=True)
class _OfDraws(Task):
    """Common part of the draws of a workload and software profile.

    Members
    -------
    full: the full system at nominal constants. sets: points whose NICs are run, see `design`. EN
        keeps its nominal options, and EN and its baselines keep their nominal mini-batches in
        flight and per graph.
    """

    full: Point
    sets: tuple[Point, ...]

    @property
    def workload(self) -> Workload:
        """Workload of the points."""
        return self.full.workload

    def nics(self, runs: Store | None) -> tuple[Point, Interpolated]:
        """Return the full system with its options, and its NICs at any constants."""
        full = self.as_drawn(self.full, runs)
        sets = tuple(replace(each, system=full.system) for each in self.sets)
        return full, _interpolated(sets, runs, contents(self.workload.data))

    def as_drawn(self, point: Point, runs: Store | None) -> Point:
        """Return the full system or a baseline with the options that draws keep."""
        return settled(point, runs) if _chooses(self.full) else point


@dataclass(frozen=True)
class Draws(_OfDraws):
    """Some joint draws: the speedup of the full system over each baseline.

    Members
    -------
    bases: baselines at nominal constants. names: constants that are drawn.
    first, count: range of the draws. seed: their seed.
    """

    bases: tuple[Point, ...]
    names: tuple[str, ...]
    first: int
    count: int
    seed: int

    @property
    def effort(self) -> float:
        """Steps of three systems, composed for each draw."""
        return _COMPOSED * self.count * (1 + len(self.bases)) * self.workload.measured

    def in_words(self) -> str:
        """Return a description of the draws."""
        return (f"draws {self.first} to {self.first + self.count - 1}, {_named(self.full)}, "
                f"{self.full.cluster.software}")

    def measured(self, runs: Store | None) -> dict:
        """Return ``speedups``: by name of a baseline, one value for each draw.

        The search of bl-tuned's options starts at its options for nominal constants.
        """
        as_is, nics = self.nics(runs)
        others = [self.as_drawn(base, runs) for base in self.bases]
        speedups: dict[str, list[float]] = {base.kind.name: [] for base in self.bases}
        near = {base.kind.name: tuning_of(base) for base in others}
        factors = drawn(self.names, self.first + self.count, self.seed)[self.first:]
        for each in factors:
            full, *bases = (scaled_by(point, self.names, each)
                            for point in (as_is, *others))
            own = interval_of(full, nics.parts[0], nics.times(full))
            for base in bases:
                speedups[base.kind.name].append(
                    interval_of(base, near=near[base.kind.name]) / own)
        return {"speedups": speedups, "source": source_of(self.full), "notes": []}


@dataclass(frozen=True)
class LeftOut(_OfDraws):
    """Leave-one-out error of the interpolation at its own points."""

    @property
    def effort(self) -> float:
        """Steps of the full system, composed twice for each point."""
        return _COMPOSED * 2 * len(self.sets) * self.workload.measured

    def in_words(self) -> str:
        """Return a description of the interpolation."""
        return f"leave-one-out, {_named(self.full)}"

    def measured(self, runs: Store | None) -> dict:
        """Return ``sets`` (NIC runs), ``axes``, ``median`` and ``most`` (errors of the time per
        mini-batch, and therefore of every speedup) and ``nics`` (the same two for each NIC value,
        by name). All errors are shares."""
        _, nics = self.nics(runs)
        errors = []
        for point, part, times in zip(nics.points, nics.parts, nics.left_out()):
            errors.append(abs(interval_of(point, part, times) / interval_of(point, part) - 1))
        return {"sets": sets_of(self.sets), "axes": nics.axes, "source": source_of(self.full),
                "median": median(errors), "most": max(errors), "notes": [],
                "nics": {name: {"median": median(each), "most": max(each)}
                         for name, each in nics.errors().items()}}


def _chooses(full: Point) -> bool:
    return full.kind.chooses_nics


def _named(full: Point) -> str:
    """Return data set and workload, and the system unless it is the paper's."""
    of = full.workload
    return f"{of.dataset}, {of.workload}" + (f", {full.label}" if _chooses(full) else "")


@lru_cache(maxsize=4)
def _interpolated(sets: tuple[Point, ...], runs: Store | None,
                  _: tuple[str, ...]) -> Interpolated:
    return Interpolated(sets, runs)
