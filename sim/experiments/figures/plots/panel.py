"""What every kind of panel has: it fills its axes, and knows where a marker stands."""

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
    """How the panels of a plot are drawn; each kind has a file in this folder.

    Members: ``y_label`` of the axis.
    """

    y_label: str

    @abstractmethod
    def fill(self, axes: Axes, metrics: Sequence[Metric], results: Results,
             entries: Sequence[Entry]) -> None:
        """Draw entries into ``axes``."""

    def height(self, metrics: Sequence[Metric], results: Results, entry: Entry) -> float | None:
        """Return where the marker of an entry stands: at the metric that is drawn."""
        return value_of(results, entry, metrics[0])


def reach_of(found: Estimate | None) -> float:
    """Return how far a whisker reaches to each side of a mean, 0 without interval."""
    return found.interval[1] - found.value if found and found.interval else 0.0
