"""Rules for claims: factors, gains, changes and trends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from sim.experiments.claims.book import Found
from sim.experiments.claims.words import factor
from sim.experiments.figures.estimate import Estimate

__all__ = ["HARDLY", "SEEN", "WITHIN", "Ruling", "above", "factor_of", "gains", "settled",
           "together", "trend", "unchanged"]

HARDLY = 0.05
"""Largest change that counts as no change."""

WITHIN = 0.25
"""Largest deviation from a factor of the paper, to either side, as a share of the factor."""

SEEN = 0.005
"""Least visible difference of two factors that are given with two decimals."""


@dataclass(frozen=True)
class Ruling:
    """Whether a claim agrees, None if a value is missing, and a sentence with the reason."""

    agrees: bool | None
    why: str = ""


def settled(parts: Iterable[bool | None]) -> bool | None:
    """Return whether all parts agree. A part that disagrees decides, even if others were not
    measured."""
    known = list(parts)
    if False in known:
        return False
    return None if None in known or not known else True


def above(own: Estimate | None, other: Estimate | None) -> bool | None:
    """Return whether a factor is visibly above another, see `SEEN`."""
    return None if own is None or other is None else own.value - other.value > SEEN


def together(rulings: Mapping[str, Ruling]) -> Ruling:
    """Return the ruling of all parts, with the reasons of the deciding ones."""
    agrees = settled(ruling.agrees for ruling in rulings.values())
    names: dict[str, list[str]] = {}
    for name, ruling in rulings.items():
        if ruling.agrees is agrees:
            names.setdefault(ruling.why, []).append(name)
    return Ruling(agrees, "; ".join(f"{', '.join(of)}: {why}" for why, of in names.items()))


def factor_of(claimed: float, found: Estimate | None, name: str = "The mean") -> Ruling:
    """Judge a factor of the paper: ours agrees within `WITHIN` to either side, and if it is a gain
    of more than `HARDLY`."""
    if found is None:
        return Ruling(None)
    value, most = found.value, claimed * (1 + WITHIN)
    least = max(claimed * (1 - WITHIN), 1 + HARDLY)
    if value > most:
        why = f"is over {most:.2f}x, {WITHIN:.0%} above the paper's {claimed}x"
    elif value >= least:
        why = f"is within {WITHIN:.0%} of the paper's {claimed}x"
    elif least == 1 + HARDLY:
        why = f"is not a gain: up to {HARDLY:.0%} counts as no change"
    else:
        why = f"is under {least:.2f}x, {WITHIN:.0%} below the paper's {claimed}x"
    return Ruling(least <= value <= most, f"{name}, {value:.2f}x, {why}.")


def gains(found: Found, average: Estimate | None) -> Ruling:
    """Judge whether there is a gain: the mean more than `HARDLY`, and no data set loses."""
    lost = {name: value for name, value in found.items() if value and 1 - value.value > SEEN}
    if lost:
        name, value = min(lost.items(), key=lambda pair: pair[1].value if pair[1] else 1.0)
        return Ruling(False, f"{name} loses ({factor(value)}).")
    if average is None:
        return Ruling(None)
    if average.value > 1 + HARDLY:
        return Ruling(True, f"the mean, {average.value:.2f}x, is a gain of more than {HARDLY:.0%}.")
    return Ruling(False, f"the mean, {average.value:.2f}x, is not a gain: up to {HARDLY:.0%} "
                         "counts as no change.")


def unchanged(found: Found) -> Ruling:
    """Judge whether factors hardly differ from 1."""
    known = {name: value for name, value in found.items() if value is not None}
    if known:
        name, value = max(known.items(), key=lambda pair: abs(pair[1].value - 1))
        why = f"The farthest from 1 is {name}, {factor(value)}; "
        why += f"up to {HARDLY:.0%} counts as no change."
        if abs(value.value - 1) > HARDLY:
            return Ruling(False, why)
        if len(known) == len(found):
            return Ruling(True, why)
    return Ruling(None)


def trend(values: Sequence[Estimate | None], rises: bool, noise: float = 0.0) -> Ruling:
    """Judge whether values only rise, or only fall, from the first to the last.

    Only seeds common to all values are compared: a sweep may have one seed while the reference
    point has several. One step may go the other way by at most ``noise``, the seeds' standard
    deviation as a share of the value. The last value must still differ from the first.
    """
    known = _of_the_same_seeds(values)
    if len(known) < max(2, len(values)):
        return Ruling(None)
    sign, word = (1, "rises") if rises else (-1, "falls")
    against = [(before, after) for before, after in pairwise(known) if sign * (after - before) < 0]
    if sign * (known[-1] - known[0]) <= 0:
        return Ruling(False, f"it starts at {_said(known[0])} and ends at {_said(known[-1])}")
    if not against:
        return Ruling(True, f"it {word} from {_said(known[0])} to {_said(known[-1])} at every step")
    before, after = max(against, key=lambda step: abs(step[1] - step[0]) / abs(step[0] or 1))
    share = abs(after - before) / abs(before or 1)
    step = f"from {_said(before)} to {_said(after)}, by {share:.2%}"
    if len(against) > 1:
        return Ruling(False, f"{len(against)} of {len(known) - 1} steps go against it, such as "
                             f"{step}")
    if share <= noise:
        return Ruling(True, f"it {word} but for one step {step}, within the seeds' noise of "
                            f"{noise:.2%}")
    seeds = f"more than the seeds' noise of {noise:.2%}" if noise else "and one seed shows no noise"
    return Ruling(False, f"one step goes against it {step}, {seeds}")


def _of_the_same_seeds(values: Sequence[Estimate | None]) -> list[float]:
    """Return each value's mean over the seeds that all values have; empty if there is no such seed.
    """
    known = [dict(value.by_seed) for value in values if value is not None]
    seeds = set.intersection(*map(set, known)) if known else set()
    return [fmean(of[seed] for seed in seeds) for of in known if seeds]


def _said(value: float) -> str:
    """Return a value in words, with enough digits to distinguish steps."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
