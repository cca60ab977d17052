"""What several seeds say of a value: its mean, and the interval that the mean lies in.

The interval is Student's, of 95 % confidence, over the seeds: it holds the mean of all seeds in 19
of 20 such evaluations, if what seeds change is normally distributed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, stdev

from sim.evaluation.point import Point
from sim.evaluation.store import Results

__all__ = ["CONFIDENCE", "Estimate", "combined", "estimated", "mean_of", "student"]

CONFIDENCE = 0.95
"""Of the intervals."""


@dataclass(frozen=True)
class Estimate:
    """A value for each seed; there is at least one.

    Members: ``by_seed``, pairs of seed and value; ``value``, their mean.
    """

    by_seed: tuple[tuple[int, float], ...]

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return fmean(value for _, value in self.by_seed)

    @property
    def deviation(self) -> float:
        """The standard deviation of a seed's value, 0 with one seed: the noise that seeds show."""
        return stdev(value for _, value in self.by_seed) if len(self.by_seed) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lowest and highest mean of all seeds at `CONFIDENCE`; None with one seed."""
        count = len(self.by_seed)
        if count < 2:
            return None
        half = student(count - 1) * self.deviation / sqrt(count)
        return self.value - half, self.value + half

    def to_json(self) -> dict[str, float | None]:
        """Return ``value``, ``low`` and ``high``; without an interval these two are None."""
        low, high = self.interval or (None, None)
        return {"value": self.value, "low": low, "high": high}

    def __format__(self, form: str) -> str:
        """Return the mean and, after it, the interval; a letter ``x`` behind ``form`` is a unit.

        >>> f"{Estimate(((1, 2.0), (2, 2.2))):.2fx}"
        '2.10x [0.83, 3.37]'
        """
        form, unit = (form[:-1], "x") if form.endswith("x") else (form, "")
        said = f"{self.value:{form}}{unit}"
        if self.interval is None:
            return said
        low, high = self.interval
        return f"{said} [{low:{form}}, {high:{form}}]"


def combined(function: Callable[..., float | None],
             *estimates: Estimate | None) -> Estimate | None:
    """Return ``function`` of values of the same seed; None where an estimate is missing, or no seed
    has a result.

    Seed by seed, because what a seed does to all the values alike is no doubt about their ratio.
    """
    if None in estimates:
        return None
    values = [dict(estimate.by_seed) for estimate in estimates if estimate]
    found = {seed: function(*(of[seed] for of in values)) for seed in values[0]
             if all(seed in of for of in values)}
    known = tuple((seed, value) for seed, value in found.items() if value is not None)
    return Estimate(known) if known else None


def mean_of(estimates: Mapping[str, Estimate | None]) -> Estimate | None:
    """Return the mean over data sets, None where one is missing: over fewer it would be another
    figure."""
    return combined(lambda *values: fmean(values), *estimates.values()) if estimates else None


def estimated(results: Results, point: Point, metric: str,
              seeds: Iterable[int]) -> Estimate | None:
    """Return a metric of a point at those of ``seeds`` that were measured, None for none.

    Without ``seeds``, at that of the point alone.
    """
    found = {seed: results.value(point.changed(seed=seed), metric)
             for seed in tuple(seeds) or (point.workload.seed,)}
    known = tuple((seed, value) for seed, value in found.items() if value is not None)
    return Estimate(known) if known else None


@cache
def student(freedom: int) -> float:
    """Return how many standard errors of a mean an interval of `CONFIDENCE` reaches to each side.

    ``freedom``: degrees of freedom, one less than there are values. By bisection of Student's
    distribution, which is a finite sum for whole ``freedom`` (Abramowitz and Stegun, 26.7.3 and
    26.7.4).
    """
    low, high = 0.0, 1e3
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _within(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability of a value between ``-t`` and ``t``."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term, total = (cos(angle) if odd else 1.0), 0.0
    for number in range(1 + odd, freedom, 2):
        total += term
        term *= number / (number + 1) * cos(angle) ** 2
    total *= sin(angle)
    return 2 / pi * (angle + total) if odd else total
