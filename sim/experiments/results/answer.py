"""The first paragraph of the results page: where the NIC loses, and why; from the rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sim.experiments.results.cases import BASE, OWN
from sim.experiments.results.rows import place_of

__all__ = ["EQUAL", "answer_of"]

EQUAL = 0.01
"""Ratios within 1 of this difference are not called a result."""


FULL = 0.8
"""Share of a link's rate that data without headers take, above which the link is the bottleneck."""


def answer_of(rows: Sequence[Mapping]) -> str:
    """Return sentences that state in which rows EN is slower than the baseline, and why."""
    told = [row for row in rows if row["ratios"][OWN]]
    if not told:
        return f"No row has a measurement of both EN and {BASE}."
    lost = [row for row in told if row["ratios"][OWN] < 1 - EQUAL]
    won = [row for row in told if row["ratios"][OWN] > 1 + EQUAL]
    said = [f"EN is slower than {BASE} in {len(lost)} of {len(told)} rows, and faster in "
            f"{len(won)}."]
    if lost:
        said += _losses(lost)
    if won:
        best = max(won, key=lambda row: row["ratios"][OWN])
        said.append(f"EN wins on {_names(won)}, by at most {best['ratios'][OWN]:.1f} times "
                    f"({place_of(best)}).")
    return " ".join(said)


def _losses(lost: Sequence[Mapping]) -> list[str]:
    """Return the sentences on the rows in which EN loses: the causes, the most frequent first."""
    worst = min(lost, key=lambda row: row["ratios"][OWN])
    said = [f"EN loses on {_names(lost)}, by at most {1 / worst['ratios'][OWN]:.1f} times "
            f"({place_of(worst)})."]
    by: dict[str, list[Mapping]] = {}
    for row in lost:
        by.setdefault(_cause(row), []).append(row)
    for cause, rows in sorted(by.items(), key=lambda each: -len(each[1])):
        said.append(f"In {len(rows)} of these rows {cause} ({_names(rows)}).")
    return said


def _cause(row: Mapping) -> str:
    """Return why EN is slower in a row, as a clause."""
    own, base = row["systems"][OWN], row["systems"][BASE]
    name = own["bottleneck"]
    if name != "nic":
        return f"the bottleneck of EN is {name}, which a NIC does not relieve"
    if (own.get("busiest") or {"us": 0.0})["us"] >= FULL * own["interval_us"]:
        return f"the bottleneck is the link of a NIC, of whose rate data take at least {FULL:.0%}"
    more = own["network_bytes_per_sample"] > 1.1 * base["network_bytes_per_sample"]
    pooled = any(table["pool"] == "owner" for table in own.get("tables") or ())
    if more and not pooled:
        return ("the bottleneck is the NIC, because it looks up and sends a vector for each row "
                f"where {BASE} sends a pooled vector for each bag")
    return ("the bottleneck is the NIC, " + (
        "although tables pool at their owner where that is faster" if pooled else
        "because it handles each key by itself, although EN sends no more bytes than the baseline"))


def _names(rows: Sequence[Mapping]) -> str:
    return ", ".join(Counter(row["workload"] for row in rows))
