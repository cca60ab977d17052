"""One figure of ours against one that others measured, and comparisons of several."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, fsum, log

from host.measurements.sources import Source, sources

__all__ = ["Check", "Comparison", "geometric_mean", "percent"]


@dataclass(frozen=True)
class Check:
    """A figure of a model against a measured one.

    Members
    -------
    name: of the figure. ours, theirs: both in ``unit``.
    bound: largest share by which ours may miss theirs, set before they were compared; None for a
        figure that is only reported.
    gpus, mini_batch, profile: what it was measured on, and the GPU's profile.

    Raises ``ValueError`` for figures that are not above 0.
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
        """Share by which ours is larger."""
        return self.ours / self.theirs - 1

    @property
    def good(self) -> bool | None:
        """Whether ours is within the bound; None without one."""
        return None if self.bound is None else abs(self.error) <= self.bound


@dataclass(frozen=True)
class Comparison:
    """Figures that are compared with one source.

    Members
    -------
    name: short, for the picture. title: what was measured. source: of
        :mod:`host.measurements.sources`.
    compared: which figure is compared and why that one, decided before the models were run on it.
    checks: the figures. conclusion: what they say, with the cause of what misses.
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
        return cls(name, title, sources().of_check(source), compared, tuple(checks), conclusion)

    @property
    def good(self) -> bool | None:
        """Whether all figures with a bound are within it; None if none has one."""
        judged = [check.good for check in self.checks if check.bound is not None]
        return all(judged) if judged else None


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of values above 0."""
    logs = [log(value) for value in values]
    return exp(fsum(logs) / len(logs))


def percent(share: float) -> str:
    """Return a share as a signed percentage."""
    return f"{100 * share:+.0f} %"
