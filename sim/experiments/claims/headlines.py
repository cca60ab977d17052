"""Headlines: the speedups of the full systems."""

from sim.evaluation.fields import WORKLOADS
from sim.evaluation.setting import BASES, FULL_SYSTEMS, Setting
from sim.evaluation.store import Results
from sim.experiments.claims.book import Book
from sim.experiments.figures.estimate import mean_of

__all__ = ["headlines", "in_words"]


def headlines(setting: Setting, results: Results) -> list[dict]:
    """Return the speedups of each full system, with each software profile, over each baseline.

    ``mean`` over data sets and seeds; ``speedups`` by data set.
    """
    rows = []
    for system in FULL_SYSTEMS:
        for workload in WORKLOADS:
            for software in setting.softwares:
                for base in BASES:
                    found = Book(setting, results, software, base).speedups(system, workload)
                    mean = mean_of(found)
                    rows.append({
                        "system": system, "workload": workload, "software": software, "base": base,
                        "mean": mean and mean.value,
                        "speedups": {name: each and each.value for name, each in found.items()}})
    return rows


def in_words(row: dict) -> tuple[str, str]:
    """Return the mean of a headline, and the speedups by data set."""
    return (_factor(row["mean"]),
            ", ".join(f"{name} {_factor(value)}" for name, value in row["speedups"].items()))


def _factor(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}x"
