"""Claims: what the paper says, what our results say, and whether the two agree."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise

from sim.experiments.book import Book, mean
from sim.experiments.setting import Setting
from sim.experiments.sweep import Results

__all__ = ["CLAIMS", "Claim", "Verdict", "claim", "factors", "judge", "less", "steps_of", "times"]


@dataclass(frozen=True)
class Verdict:
    """What results say to a claim.

    Members
    -------
    ours: our figure, in words. agrees: True, False, or None where it was not measured.
    why: reasons, made of figures. values: the numbers, by name.
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


CLAIMS: dict[str, Claim] = {}
"""By name; filled by the modules ``claims_...``."""


def claim(name: str, text: str, *figures: str) -> Callable:
    """Enter the decorated function as the judge of a claim."""
    def enter(function: Callable[[Book], Verdict]) -> Callable[[Book], Verdict]:
        CLAIMS[name] = Claim(name, text, figures, function)
        return function
    return enter


def times(values: Mapping[str, float | None]) -> str:
    """Return factors in words."""
    return ", ".join(f"{name} {'n/a' if value is None else f'{value:.2f}x'}"
                     for name, value in values.items())


def less(values: Mapping[str, float | None]) -> str:
    """Return shares in words."""
    return ", ".join(f"{name} {'n/a' if value is None else f'{value:.0%}'}"
                     for name, value in values.items())


def factors(claimed: float, found: Mapping[str, float | None], why: str = "") -> Verdict:
    """Judge a mean factor: it agrees when it is not below the claimed one at one decimal, which is
    what the paper prints."""
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


def judge(setting: Setting, results: Results) -> list[dict]:
    """Return every claim with its verdicts, as plain values.

    ``verdicts`` holds one for each software profile and baseline. The claim as a whole is judged
    where the paper stands: eager software, baseline ``bl-paper``.
    """
    # Each enters its claims when it is loaded.
    from sim.experiments import claims_inference, claims_system, claims_training  # noqa: F401

    judged = []
    for name in sorted(CLAIMS, key=lambda name: int(name[1:])):
        entry = CLAIMS[name]
        verdicts = [_verdict(entry, Book(setting, results, software, base))
                    for software in setting.softwares for base in ("bl-paper", "bl-tuned")]
        first = verdicts[0]
        judged.append({"claim": name, "text": entry.text, "figures": list(entry.figures),
                       "agrees": first["agrees"], "ours": first["ours"], "why": first["why"],
                       "verdicts": verdicts})
    return judged


def _verdict(entry: Claim, book: Book) -> dict:
    verdict = entry.verdict(book)
    why = verdict.why
    if verdict.agrees is None:
        missing = list(dict.fromkeys(book.asked))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        why = "not measured: " + ("; ".join(missing[:3]) or "no values") + more
    return asdict(verdict) | {"why": why, "software": book.software, "base": book.base}
