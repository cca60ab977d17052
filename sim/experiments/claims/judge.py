"""Judge all claims: what the paper says, what our results say, and whether the two agree."""

from dataclasses import asdict

from sim.experiments.claims.book import Book
from sim.experiments.claims.registry import CLAIMS
from sim.experiments.claims.verdict import Claim
from sim.experiments.points.setting import BASES, Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["judge"]


def judge(setting: Setting, results: Results) -> list[dict]:
    """Return every claim with its verdicts, as plain values.

    ``verdicts`` holds one for each software profile and baseline. The claim as a whole is judged
    where the paper stands: eager software, baseline ``bl-paper``.
    """
    judged = []
    for claim in CLAIMS:
        verdicts = [_verdict(claim, Book(setting, results, software, base))
                    for software in setting.softwares for base in BASES]
        first = verdicts[0]
        judged.append({"claim": claim.name, "text": claim.text, "figures": list(claim.figures),
                       "agrees": first["agrees"], "ours": first["ours"], "why": first["why"],
                       "verdicts": verdicts})
    return judged


def _verdict(claim: Claim, book: Book) -> dict:
    verdict = claim.verdict(book)
    why = verdict.why
    if verdict.agrees is None:
        missing = list(dict.fromkeys(book.asked))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        why = "not measured: " + ("; ".join(missing[:3]) or "no values") + more
    return asdict(verdict) | {"why": why, "software": book.software, "base": book.base}
