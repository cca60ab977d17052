"""Comparison of model and measurement, for operations that no profile was derived from."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median

__all__ = ["Check", "typical_factor", "write_checks"]


@dataclass(frozen=True)
class Check:
    """One operation: its name and size, and its modelled and measured microseconds."""

    name: str
    model_us: float
    measured_us: float

    @property
    def ratio(self) -> float:
        """Modelled time divided by measured time."""
        return self.model_us / self.measured_us


def typical_factor(checks: Sequence[Check]) -> float:
    """Return the factor that half of the modelled times are within, too high or too low."""
    return exp(median(abs(log(check.ratio)) for check in checks))


def write_checks(path: Path, checks: Sequence[Check]) -> None:
    """Write ``checks`` as CSV: operation, model_us, measured_us, ratio."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["operation", "model_us", "measured_us", "ratio"])
        rows.writerows([check.name, f"{check.model_us:.3f}", f"{check.measured_us:.3f}",
                        f"{check.ratio:.3f}"] for check in checks)
