"""Panels of lines, one for each system, over a growing quantity."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.store import Results
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of
from sim.experiments.figures.plots.panel import Panel, ends_of, missing
from sim.page import chart

__all__ = ["Lines"]


@dataclass(frozen=True)
class Lines(Panel):
    """The first metric as lines.

    Members: ``x_label`` of the logarithmic axis; ``x_share`` for shares in percent, which may be 0
    and are drawn at equal distances.
    """

    x_label: str
    x_share: bool = False

    def described(self, title: str, metrics: Sequence[Metric], results: Results,
                  entries: Sequence[Entry], marked: Sequence[Entry]) -> chart.Panel:
        """Return the panel of ``entries``."""
        metric, lines, values = metrics[0], [], []
        highest = 0.0
        for number, name in enumerate(dict.fromkeys(entry.series for entry in entries)):
            own = [entry for entry in entries if entry.series == name]
            found = [estimate_of(results, entry, metric) for entry in own]
            line = chart.Series(
                name=name, x=[self.place(entry) for entry in own], **ends_of(found),
                y=[each and each.value for each in found],
                colour=chart.COLOURS[number % len(chart.COLOURS)])
            lines.append(line)
            values += line.y
            highest = max([highest, *(end for end in (*line.y, *line.high) if end is not None)])
        lines += self.rings(metrics, results, marked)
        return chart.Panel(title=title, series=lines, x=self._axis(entries),
                           y=chart.Axis(self.y_label, bounds=(0, 1.12 * highest or 1)),
                           level=1 if metric.base else None, note=missing(entries, values))

    def place(self, entry: Entry) -> float | str:
        """Return the position of an entry on the x axis; a share is a text."""
        if self.x_share:
            return f"{float(entry.x):g}" if entry.x else "off"
        return float(entry.x)

    def _axis(self, entries: Sequence[Entry]) -> chart.Axis:
        """Return the x axis with a tick at each position."""
        if self.x_share:
            return chart.Axis(self.x_label)
        places = sorted({float(entry.x) for entry in entries})
        return chart.Axis(self.x_label, log=True, ticks=places,
                          names=[f"{place:,.0f}" for place in places])
