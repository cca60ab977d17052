"""Headlines: the speedups of the full system."""

from sim.experiments.claims.book import Book, mean
from sim.experiments.points.point import WORKLOADS
from sim.experiments.points.setting import BASES, Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["headlines"]


def headlines(setting: Setting, results: Results) -> list[dict]:
    """Return the speedups of the full system, with each software profile, over each baseline."""
    rows = []
    for workload in WORKLOADS:
        for software in setting.softwares:
            for base in BASES:
                found = Book(setting, results, software, base).speedups("fs", workload)
                rows.append({"workload": workload, "software": software, "base": base,
                             "mean": mean(found), "speedups": found})
    return rows
