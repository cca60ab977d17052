"""Claims of the paper, and verdicts on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from sim.experiments.claims.book import Book, mean

__all__ = ["HARDLY", "Claim", "Verdict", "claim", "factors", "less", "steps_of", "times"]

HARDLY = 0.05
"""The largest change that counts as none."""


@dataclass(frozen=True)
class Verdict:
    """What results say about a claim.

    Members
    -------
    ours: what we measured, in words. agrees: True, False, or None where it was not measured.
    why: reasons, with numbers. values: the numbers, by name.
    """

    ours: str
    agrees: bool | None
    why: str = ""
    values: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: ``text``, where it is (``figures``), and the function that judges it.
    """

    name: str
    text: str
    figures: tuple[str, ...]
    verdict: Callable[[Book], Verdict]


def claim(name: str, text: str, *figures: str) -> Callable[[Callable[[Book], Verdict]], Claim]:
    """Make the decorated function a claim, which it judges."""
    return partial(Claim, name, text, figures)


def times(values: Mapping[str, float | None]) -> str:
    """Return factors in words."""
    return ", ".join(f"{name} {'n/a' if value is None else f'{value:.2f}x'}"
                     for name, value in values.items())


def less(values: Mapping[str, float | None]) -> str:
    """Return shares in words."""
    return ", ".join(f"{name} {'n/a' if value is None else f'{value:.0%}'}"
                     for name, value in values.items())


def factors(claimed: float, found: Mapping[str, float | None], why: str = "") -> Verdict:
    """Judge a mean factor: it agrees when it is at least the claimed one, rounded to one decimal as
    the paper prints it."""
    average = mean(found)
    return Verdict(f"mean {'n/a' if average is None else f'{average:.2f}x'} ({times(found)})",
                   None if average is None else round(average, 1) >= claimed, why,
                   {"mean": average, **found})


def steps_of(values: list[float | None], slack: float = 0.0) -> tuple[bool, bool] | None:
    """Return whether values never fall, and whether they never rise, by more than ``slack`` of
    them; None where one is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len(known) < 2:
        return None
    steps = list(pairwise(known))
    return (all(b >= a - slack * abs(a) for a, b in steps),
            all(b <= a + slack * abs(a) for a, b in steps))
