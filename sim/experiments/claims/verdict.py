"""Claims of the paper, and verdicts on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sim.experiments.claims.book import Book

__all__ = ["Claim", "Verdict", "claim"]


@dataclass(frozen=True)
class Verdict:
    """What results say about a claim.

    Members
    -------
    ours: what we measured, in words. agrees: True, False, or None where it was not measured.
    why: what decides it, with numbers. values: the numbers by name, perhaps nested, each an
        :class:`~sim.experiments.figures.estimate.Estimate`, a plain value or None.
    """

    ours: str
    agrees: bool | None
    why: str = ""
    values: Mapping = field(default_factory=dict)


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
