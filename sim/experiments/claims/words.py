"""Values of claims in words."""

from sim.experiments.claims.book import Found
from sim.experiments.figures.estimate import Estimate

__all__ = ["listed", "number", "share", "times"]


def times(values: Found) -> str:
    """Return factors in words, such as ``kaggle 2.84x, avazu 2.19x``."""
    return listed(values, factor)


def factor(value: Estimate | None) -> str:
    """Return a factor in words."""
    return "n/a" if value is None else f"{value:.2fx}"


def share(value: Estimate | None) -> str:
    """Return a share in words."""
    if value is None:
        return "n/a"
    digits = 1 if abs(value.value) < 0.01 else 0
    return f"{round(value.value, 2 + digits) + 0:.{digits if round(value.value, 3) else 0}%}"


def number(value: Estimate | None) -> str:
    """Return a count, or a value between 0 and 1, in words."""
    if value is None:
        return "n/a"
    return f"{value.value:,.0f}" if abs(value.value) > 1 else f"{value.value:.3f}"


def listed(values: Found, said=share) -> str:
    """Return values in words, each after its name."""
    return ", ".join(f"{name} {said(value)}" for name, value in values.items())
