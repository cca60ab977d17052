"""Panels of stacked bars: the phases of a mini-batch that runs alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.systems import PHASES
from sim.evaluation.store import Results
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, value_of
from sim.experiments.figures.plots.panel import Panel, missing
from sim.page import chart

__all__ = ["PHASE_METRICS", "Stacked"]

PHASE_METRICS = tuple(Metric(f"phase_{phase}", f"phases_us.{phase}", "us") for phase in PHASES)
"""Metrics of the plot, from the bottom of a bar to the top."""

_LIGHT = (*chart.COLOURS[:7], "#F0E442", "#BBBBBB")
"""Colours of areas, in which yellow is visible."""


@dataclass(frozen=True)
class Stacked(Panel):
    """All metrics, which must be `PHASE_METRICS`, stacked.

    Members: ``x_label`` of the axis.
    """

    x_label: str

    def described(self, title: str, metrics: Sequence[Metric], results: Results,
                  entries: Sequence[Entry], marked: Sequence[Entry]) -> chart.Panel:
        """Return the panel of ``entries``, with the sum above each bar."""
        names = [str(entry.x) for entry in entries]
        heights = [[value_of(results, entry, metric) for entry in entries] for metric in metrics]
        sums = [None if outcome is None or outcome.metrics is None else
                sum(value or 0.0 for value in column)
                for outcome, column in zip((results.get(entry.point) for entry in entries),
                                           zip(*heights))]
        phases = [chart.Series(name=phase.replace("_", " "), kind="bar", x=names, y=values,
                               colour=colour)
                  for phase, values, colour in zip(PHASES, heights, _LIGHT)]
        total = chart.Series(name="sum", kind="point", marker="", x=names, y=sums, legend=False,
                             labels=["" if value is None else f"{value:,.0f}" for value in sums])
        highest = max((value for value in sums if value is not None), default=0.0)
        return chart.Panel(
            title=title, stacked=True, x=chart.Axis(self.x_label),
            y=chart.Axis(self.y_label, bounds=(0, 1.15 * highest or 1)),
            series=[*phases, total, *self.rings(metrics, results, marked)],
            note=missing(entries, sums))

    def height(self, metrics: Sequence[Metric], results: Results, entry: Entry) -> float | None:
        """Return the height of an entry's marker: the sum of the phases."""
        return results.value(entry.point, "service_us")
