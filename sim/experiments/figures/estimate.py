"""Mean of a value over seeds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from sim.evaluation.point import Point
from sim.evaluation.store import Results

__all__ = ["Estimate", "combined", "estimated", "mean_of"]


@dataclass(frozen=True)
class Estimate:
    """A value for each of at least one seed.

    Members: ``by_seed``, pairs of seed and value; ``value``, their mean.
    """

    by_seed: tuple[tuple[int, float], ...]

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return fmean(value for _, value in self.by_seed)

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds, 0 with one seed."""
        return stdev(value for _, value in self.by_seed) if len(self.by_seed) > 1 else 0.0

    def __format__(self, form: str) -> str:
        """Return the mean; a letter ``x`` behind ``form`` is a unit.

        >>> f"{Estimate(((1, 2.0), (2, 2.2))):.2fx}"
        '2.10x'
        """
        form, unit = (form[:-1], "x") if form.endswith("x") else (form, "")
        return f"{self.value:{form}}{unit}"


def combined(function: Callable[..., float | None],
             *estimates: Estimate | None) -> Estimate | None:
    """Return ``function`` of values of the same seed; None if an estimate is missing, or no seed
    has a result.

    Values are combined by seed, because a seed's common effect cancels in their ratio.
    """
    if None in estimates:
        return None
    values = [dict(estimate.by_seed) for estimate in estimates if estimate]
    found = {seed: function(*(of[seed] for of in values)) for seed in values[0]
             if all(seed in of for of in values)}
    known = tuple((seed, value) for seed, value in found.items() if value is not None)
    return Estimate(known) if known else None


def mean_of(estimates: Mapping[str, Estimate | None]) -> Estimate | None:
    """Return the mean over data sets, None if one is missing."""
    return combined(lambda *values: fmean(values), *estimates.values()) if estimates else None


def estimated(results: Results, point: Point, metric: str,
              seeds: Iterable[int]) -> Estimate | None:
    """Return a metric of a point at the measured ones of ``seeds``, None if there are none.

    Without ``seeds``: at the point's own seed.
    """
    found = {seed: results.value(point.changed(seed=seed), metric)
             for seed in tuple(seeds) or (point.workload.seed,)}
    known = tuple((seed, value) for seed, value in found.items() if value is not None)
    return Estimate(known) if known else None
