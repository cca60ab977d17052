"""Base class of panels: describes entries as a panel of a chart."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.store import Results
from sim.experiments.figures.estimate import Estimate
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, value_of
from sim.page import chart

__all__ = ["Panel", "ends_of", "missing"]


@dataclass(frozen=True)
class Panel(ABC):
    """Kind of panel of a plot, one module each in this package.

    Members: ``y_label`` of the axis.
    """

    y_label: str

    @abstractmethod
    def described(self, title: str, metrics: Sequence[Metric], results: Results,
                  entries: Sequence[Entry], marked: Sequence[Entry]) -> chart.Panel:
        """Return the panel of ``entries``, with rings at the entries ``marked``."""

    def height(self, metrics: Sequence[Metric], results: Results, entry: Entry) -> float | None:
        """Return the height of an entry's marker: the drawn metric."""
        return value_of(results, entry, metrics[0])

    def place(self, entry: Entry) -> float | str:
        """Return the position of an entry on the x axis."""
        return str(entry.x)

    def rings(self, metrics: Sequence[Metric], results: Results,
              marked: Sequence[Entry]) -> list[chart.Series]:
        """Return the markers of entries whose NICs ran in ``rtl``, if there are any."""
        found = {self.place(entry): self.height(metrics, results, entry) for entry in marked}
        there = {place: value for place, value in found.items() if value is not None}
        return [chart.Series(name="RTL", kind="point", marker="ring", colour="#000000",
                             x=list(there), y=list(there.values()))] if there else []


def ends_of(found: Sequence[Estimate | None]) -> dict[str, list[float | None]]:
    """Return ``low`` and ``high`` of estimates, empty if no estimate has an interval."""
    intervals = [each.interval if each else None for each in found]
    if not any(intervals):
        return {"low": [], "high": []}
    return {name: [each and each[at] for each in intervals]
            for at, name in enumerate(("low", "high"))}


def missing(entries: Sequence[Entry], values: Sequence[float | None]) -> str:
    """Return the number of entries without a value in words, empty if there are none."""
    none = sum(value is None for value in values)
    return f"{none} of {len(entries)} points without a value" if none else ""
