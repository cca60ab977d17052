"""A figure's values as rows of a table, and as CSV."""

import csv
import io
from dataclasses import astuple, dataclass, fields

from sim.experiments.figures.figure import Entry, Figure, Metric
from sim.experiments.points.setting import Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["Row", "csv_text", "rows_of", "value_of"]


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


def value_of(results: Results, entry: Entry, metric: Metric) -> float | None:
    """Return the value of a metric at an entry, None where a point of it has none."""
    own = results.value(entry.point, metric.path)
    if metric.ratio is None:
        return own
    base = results.value(dict(entry.bases)[metric.base], metric.path) if metric.base else None
    if not own or not base:
        return None
    return base / own if metric.ratio == "less" else own / base


def rows_of(figure: Figure, setting: Setting, results: Results) -> list[Row]:
    """Return every value of a figure; a point that failed gives rows without value."""
    return [Row(entry.point.dataset, entry.point.nodes, entry.point.samples, entry.point.software,
                entry.point.fidelity, entry.system, metric.name, value_of(results, entry, metric),
                metric.unit)
            for entry in (*figure.entries(setting), *figure.marked(setting))
            for metric in figure.metrics]


def csv_text(rows: list[Row]) -> str:
    """Return rows as a CSV file with a header; numbers in full, nothing where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)
    return text.getvalue()
