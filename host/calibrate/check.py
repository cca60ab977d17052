"""Model against measurement, for operations that a profile was not made from."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median

__all__ = ["Check", "typical_factor", "write_checks"]


@dataclass(frozen=True)
class Check:
    """One operation: its name with its size, and its microseconds by the model and measured."""

    name: str
    model_us: float
    measured_us: float

    @property
    def ratio(self) -> float:
        """Model by measurement."""
        return self.model_us / self.measured_us


def typical_factor(checks: Sequence[Check]) -> float:
    """Return the factor by which half of the models are off or less, upwards or downwards."""
    return exp(median(abs(log(check.ratio)) for check in checks))


def write_checks(path: Path, checks: Sequence[Check]) -> None:
    """Write ``checks`` as CSV: operation, model_us, measured_us, ratio."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["operation", "model_us", "measured_us", "ratio"])
        rows.writerows([check.name, f"{check.model_us:.3f}", f"{check.measured_us:.3f}",
                        f"{check.ratio:.3f}"] for check in checks)
