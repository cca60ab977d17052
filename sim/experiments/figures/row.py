"""Values of a figure or table as rows, and as a CSV file."""

import csv
import io
from dataclasses import astuple, dataclass, fields

__all__ = ["Row", "csv_text"]


@dataclass(frozen=True)
class Row:
    """One value; its fields are the columns of the CSV file."""

    dataset: str
    nodes: int
    mini_batch: int
    profile: str
    fidelity: str
    system: str
    metric: str
    value: float | None
    unit: str


def csv_text(rows: list[Row]) -> str:
    """Return rows as a CSV file with a header; a missing value is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)
    return text.getvalue()
