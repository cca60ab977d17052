"""Estimates of public designs in our three cases, beside Vivado's figures.

Our delays are of UltraScale+ at speed grade -2. A figure of another family or grade keeps its row,
and its error says correspondingly less. A met constraint is a lower bound of the maximum: it
refutes a case that estimates less, but does not confirm a case that estimates more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from scipy.stats import spearmanr

from gen.timing.nets import CASE_NAMES
from tests.gen.timing.public.designs import Design, Published

__all__ = ["Comparison", "Row", "compare", "spearman"]

FAMILY, SPEED_GRADE = "UltraScale+", -2


@dataclass(frozen=True)
class Row:
    """One published figure and the estimates of its design in MHz, one per case."""

    design: str
    published: Published
    mhz: tuple[float, float, float]

    @property
    def errors(self) -> tuple[float | None, ...]:
        """Estimate over published, less 1, of each case; ``None`` where a bound holds."""
        return tuple(None if self.bound and mhz >= self.published.mhz
                     else mhz / self.published.mhz - 1 for mhz in self.mhz)

    @property
    def bound(self) -> bool:
        """Whether the figure is only a lower bound of the maximum."""
        return self.published.kind == "met"

    @property
    def same_silicon(self) -> bool:
        """Whether the figure is of the family and the speed grade of our delays."""
        return (self.published.family, self.published.speed_grade) == (FAMILY, SPEED_GRADE)


@dataclass(frozen=True)
class Comparison:
    """The rows, and summary values of each case.

    Members
    -------
    rank: Spearman's correlation over ``ranked`` designs, each with the median of its UltraScale+
        figures other than bounds; ``None`` with fewer than three.
    median_error: over the rows of UltraScale+ other than bounds.
    refuted: number of bounds that a case fails.
    """

    rows: tuple[Row, ...]
    ranked: tuple[str, ...]
    rank: Mapping[str, float | None]
    median_error: Mapping[str, float | None]
    refuted: Mapping[str, int]
    missing: tuple[str, ...]


def compare(designs: Iterable[Design],
            estimates: Mapping[str, tuple[float, float, float]]) -> Comparison:
    """Return the comparison of ``designs`` with ``estimates``, MHz of each case of
    :data:`gen.timing.nets.CASE_NAMES`.

    Designs without an estimate are in ``missing``. ``ValueError`` for estimates of an unknown
    design, or estimates that do not fall from case to case.
    """
    designs = tuple(designs)
    names = {design.name for design in designs}
    for name, mhz in estimates.items():
        if name not in names:
            raise ValueError(f"estimates: {name!r} is no design")
        if not mhz[0] >= mhz[1] >= mhz[2] > 0:
            raise ValueError(f"estimates of {name!r} must fall from case to case and be above 0, "
                             f"not {mhz!r}")
    rows = tuple(Row(design.name, published, estimates[design.name])
                 for design in designs if design.name in estimates
                 for published in design.published)
    exact = [row for row in rows if not row.bound and row.published.family == FAMILY]
    ranked = tuple(dict.fromkeys(row.design for row in exact))
    measured = [median(row.published.mhz for row in exact if row.design == name)
                for name in ranked]
    return Comparison(
        rows=rows, ranked=ranked,
        rank={case: spearman(measured, [estimates[name][index] for name in ranked])
              for index, case in enumerate(CASE_NAMES)},
        median_error={case: median(row.mhz[index] / row.published.mhz - 1 for row in exact)
                      if exact else None for index, case in enumerate(CASE_NAMES)},
        refuted={case: sum(row.bound and row.errors[index] is not None for row in rows)
                 for index, case in enumerate(CASE_NAMES)},
        missing=tuple(design.name for design in designs if design.name not in estimates))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation; equal values share the mean of their ranks.

    ``None`` for fewer than three pairs, or if all values of a side are equal.
    """
    if len(first) != len(second):
        raise ValueError(f"spearman: lengths must be equal, not {len(first)} and {len(second)}")
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return float(spearmanr(first, second).statistic)
