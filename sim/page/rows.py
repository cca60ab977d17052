"""Values of figures as CSV files."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["COLUMNS", "Row", "csv_text"]

COLUMNS = ("workload", "cluster", "mini_batch", "profile", "fidelity", "system", "metric", "value",
           "low", "high", "unit")
"""Columns of a figure's CSV file: members of :class:`Row`."""


@dataclass(frozen=True)
class Row:
    """One value of a figure.

    Members
    -------
    workload, cluster, system: names. mini_batch: samples over all nodes.
    profile: software profile. fidelity: fidelity of the NICs. metric: name of the value.
    value: the value, or None if it is missing. low, high: ends of its interval, or None.
    unit: unit of the value.
    """

    workload: str
    cluster: str
    mini_batch: int
    profile: str
    fidelity: str
    system: str
    metric: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None


def csv_text(rows: Sequence[Any], columns: Sequence[str] = COLUMNS) -> str:
    """Return rows as a CSV file with a header; a missing value is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if (value := getattr(row, name)) is None else value for name in columns]
                     for row in rows)
    return text.getvalue()
