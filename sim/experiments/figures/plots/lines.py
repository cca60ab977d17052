"""Panels of lines, one for each system, over something that grows."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from sim.evaluation.store import Results
from sim.experiments.figures.picture import COLOURS
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of, value_of
from sim.experiments.figures.plots.panel import Panel, reach_of

__all__ = ["Lines"]

_MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class Lines(Panel):
    """The first metric as lines.

    Members: ``x_label`` of the axis, whose scale is logarithmic; ``x_share`` for shares in percent,
    of which one may be 0.
    """

    x_label: str
    x_share: bool = False

    def fill(self, axes: Axes, metrics: Sequence[Metric], results: Results,
             entries: Sequence[Entry]) -> None:
        """Draw entries into ``axes``."""
        metric = metrics[0]
        highest = 0.0
        for number, series in enumerate(dict.fromkeys(entry.series for entry in entries)):
            own = [entry for entry in entries if entry.series == series]
            found = [(float(entry.x), estimate_of(results, entry, metric)) for entry in own]
            there = [(x, each.value, reach_of(each)) for x, each in found if each is not None]
            places, values, reach = zip(*there) if there else ((), (), ())
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(places, values, label=series, color=colour,
                      marker=_MARKERS[number % len(_MARKERS)], markersize=4.5, linewidth=1.4)
            if any(reach):
                axes.errorbar(places, values, reach, linestyle="none", color=colour, capsize=2.5,
                              elinewidth=1)
            highest = max([highest, *(value + more for value, more in zip(values, reach))])
        _count_missing(axes, results, entries, metric)
        if metric.base:
            axes.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
        self._scale(axes, sorted({float(entry.x) for entry in entries}))
        axes.set_ylim(0, 1.12 * highest or 1)
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel(self.x_label, fontsize=9)
        axes.set_ylabel(self.y_label, fontsize=8)

    def _scale(self, axes: Axes, places: list[float]) -> None:
        """Scale the x axis and put a tick at each place."""
        if self.x_share:
            # Linear below the smallest size: a logarithmic axis has no place for 0.
            smallest = next((x for x in places if x), 1)
            axes.set_xscale("symlog", linthresh=smallest, linscale=0.5)
            axes.set_xlim(-0.1 * smallest, 1.15 * max(places))
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}" if x else "off")
        else:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axes.xaxis.set_major_locator(FixedLocator(places))
        axes.xaxis.set_minor_locator(NullLocator())


def _count_missing(axes: Axes, results: Results, entries: Sequence[Entry],
                   metric: Metric) -> None:
    """Write into a panel how many of its points have no value."""
    none = sum(value_of(results, entry, metric) is None for entry in entries)
    if none:
        axes.text(0.98, 0.02, f"{none} of {len(entries)} points: none", fontsize=7, ha="right",
                  transform=axes.transAxes)
