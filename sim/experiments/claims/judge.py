"""Verdicts on all claims: the paper's statement, our results, and whether they agree."""

from collections.abc import Mapping
from typing import Any

from sim.evaluation.setting import BASES, Setting
from sim.evaluation.store import Results
from sim.experiments.claims.book import Book
from sim.experiments.claims.registry import CLAIMS
from sim.experiments.claims.verdict import Claim
from sim.experiments.figures.estimate import Estimate

__all__ = ["judge", "judged"]


def judge(setting: Setting, results: Results) -> list[dict]:
    """Return :func:`judged` of every claim, in numerical order."""
    return [judged(claim, setting, results) for claim in CLAIMS]


def judged(claim: Claim, setting: Setting, results: Results) -> dict:
    """Return a claim with its verdicts, as plain values.

    ``verdicts`` contains a verdict for each software profile and baseline. The verdict of the claim
    itself uses the paper's conditions: eager software, baseline ``bl-paper``. Claims about the time
    of inference are judged in steady state, because the paper argues from pipelining; ``why``
    states it if mini-batches that run alone give another verdict.
    """
    verdicts = [_verdict(claim, setting, results, software, base)
                for software in setting.softwares for base in BASES]
    first = verdicts[0]
    return {"claim": claim.name, "text": claim.text, "figures": list(claim.figures),
            "agrees": first["agrees"], "ours": first["ours"], "why": first["why"],
            "verdicts": verdicts}


def _verdict(claim: Claim, setting: Setting, results: Results, software: str, base: str) -> dict:
    book = Book(setting, results, software, base)
    verdict = claim.verdict(book)
    why = verdict.why
    if verdict.agrees is None:
        missing = list(dict.fromkeys(book.asked))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        why = "not measured: " + ("; ".join(missing[:3]) or "no values") + more
    elif book.timed:
        alone = claim.verdict(Book(setting, results, software, base, alone=True))
        if alone.agrees not in (None, verdict.agrees):
            why += (f" Mini-batches that run alone give another verdict, "
                    f"{'yes' if alone.agrees else 'no'}: {alone.ours}.")
    return {"ours": verdict.ours, "agrees": verdict.agrees, "why": why,
            "values": _plain(verdict.values), "software": software, "base": base}


def _plain(value: Any) -> Any:
    """Return values as JSON types; an estimate becomes its mean."""
    if isinstance(value, Estimate):
        return value.value
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value
