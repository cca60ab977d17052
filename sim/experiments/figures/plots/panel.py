"""Base class of panels: draws into axes, and computes the height of markers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from sim.evaluation.store import Results
from sim.experiments.figures.estimate import Estimate
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, value_of

__all__ = ["Panel", "reach_of"]


@dataclass(frozen=True)
class Panel(ABC):
    """Kind of panel of a plot, one module each in this package.

    Members: ``y_label`` of the axis.
    """

    y_label: str

    @abstractmethod
    def fill(self, axes: Axes, metrics: Sequence[Metric], results: Results,
             entries: Sequence[Entry]) -> None:
        """Draw entries into ``axes``."""

    def height(self, metrics: Sequence[Metric], results: Results, entry: Entry) -> float | None:
        """Return the height of an entry's marker: the drawn metric."""
        return value_of(results, entry, metrics[0])


def reach_of(found: Estimate | None) -> float:
    """Return the length of a whisker on each side of a mean, 0 without an interval."""
    return found.interval[1] - found.value if found and found.interval else 0.0
