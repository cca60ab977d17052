"""A value of ours against a measured one, and comparisons of several values."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, fsum, log

from host.measurements.sources import Source, sources

__all__ = ["Check", "Comparison", "geometric_mean", "percent"]


@dataclass(frozen=True)
class Check:
    """A value of a model against a measured value.

    Members
    -------
    name: name of the value. ours, theirs: both in ``unit``.
    bound: largest relative error, set before the comparison; None for a value that is only
        reported.
    gpus, mini_batch, profile: measured configuration, and the GPU's profile.

    Raises ``ValueError`` for values that are not above 0.
    """

    name: str
    ours: float
    theirs: float
    unit: str
    bound: float | None = None
    gpus: int = 1
    mini_batch: int = 0
    profile: str = "gpu_v100"

    def __post_init__(self) -> None:
        for member in ("ours", "theirs"):
            if not getattr(self, member) > 0:
                raise ValueError(f"{member} must be above 0, not {getattr(self, member)!r}")

    @property
    def error(self) -> float:
        """Relative error of ours."""
        return self.ours / self.theirs - 1

    @property
    def good(self) -> bool | None:
        """Whether ours is within the bound; None without a bound."""
        return None if self.bound is None else abs(self.error) <= self.bound


@dataclass(frozen=True)
class Comparison:
    """Values that are compared with one source.

    Members
    -------
    name: short name for the picture. title: measured quantity. source: of
        :mod:`host.measurements.sources`.
    compared: the value to compare and the reason for it, chosen before the model was run.
    checks: the values; misses come first. conclusion: result, with the cause of errors.
    """

    name: str
    title: str
    source: Source
    compared: str
    checks: tuple[Check, ...]
    conclusion: str

    @classmethod
    def of(cls, name: str, title: str, source: str, compared: str, checks: Iterable[Check],
           conclusion: str) -> "Comparison":
        """Return the comparison with the source of that name."""
        return cls(name, title, sources().of_check(source), compared,
                   tuple(sorted(checks, key=lambda each: (each.good is None, each.good is True))),
                   conclusion)

    @property
    def good(self) -> bool | None:
        """Whether all values with a bound are within it; None if no value has a bound."""
        judged = [check.good for check in self.checks if check.bound is not None]
        return all(judged) if judged else None

    @property
    def worst(self) -> float:
        """Largest factor between ours and theirs among the values with a bound; at least 1."""
        return max((max(check.ours / check.theirs, check.theirs / check.ours)
                    for check in self.checks if check.bound is not None), default=1.0)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of values above 0."""
    logs = [log(value) for value in values]
    return exp(fsum(logs) / len(logs))


def percent(share: float) -> str:
    """Return a share as a signed percentage."""
    return f"{100 * share:+.0f} %"
