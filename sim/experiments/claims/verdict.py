"""Claims of the paper, and verdicts on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sim.experiments.claims.book import Book

__all__ = ["Claim", "Verdict", "claim"]


@dataclass(frozen=True)
class Verdict:
    """Result for a claim.

    Members
    -------
    ours: our measurement, in words. agrees: True, False, or None if not measured.
    why: the deciding numbers, in words. values: the numbers by name, possibly nested; each an
        :class:`~sim.experiments.figures.estimate.Estimate`, a plain value or None.
    """

    ours: str
    agrees: bool | None
    why: str = ""
    values: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its ``text``, its ``figures``, and the function that judges it."""

    name: str
    text: str
    figures: tuple[str, ...]
    verdict: Callable[[Book], Verdict]


def claim(name: str, text: str, *figures: str) -> Callable[[Callable[[Book], Verdict]], Claim]:
    """Decorate a function as the judge of a claim."""
    return partial(Claim, name, text, figures)
