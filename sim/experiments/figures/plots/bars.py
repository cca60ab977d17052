"""Panels of bars, one for each system."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.store import Results
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of
from sim.experiments.figures.plots.panel import Panel, ends_of, missing
from sim.page import chart

__all__ = ["Bars"]


@dataclass(frozen=True)
class Bars(Panel):
    """The first metric, a speedup, as bars."""

    def described(self, title: str, metrics: Sequence[Metric], results: Results,
                  entries: Sequence[Entry], marked: Sequence[Entry]) -> chart.Panel:
        """Return the panel of ``entries``."""
        names = [str(entry.x) for entry in entries]
        found = [estimate_of(results, entry, metrics[0]) for entry in entries]
        values = [each and each.value for each in found]
        bars = chart.Series(
            name=metrics[0].name, kind="bar", x=names, y=values, legend=False, **ends_of(found),
            colour=[chart.colour_of(name) for name in names],
            labels=["" if value is None else f"{value:.2f}" for value in values])
        return chart.Panel(title=title, y=chart.Axis(self.y_label), level=1,
                           series=[bars, *self.rings(metrics, results, marked)],
                           note=missing(entries, values))
