"""Panels of bars, one for each system."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from sim.evaluation.store import Results
from sim.experiments.figures.picture import COLOURS
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of
from sim.experiments.figures.plots.panel import Panel, reach_of

__all__ = ["Bars"]

_OF_SYSTEM = dict(zip(("BL-tuned", "GA", "NIC", "LC", "RC", "SC", "FS"), COLOURS)) | {
    "EN": "#F0E442"}
"""A system has the same colour wherever it is a bar; the others share the last one."""


@dataclass(frozen=True)
class Bars(Panel):
    """The first metric, a speedup, as bars."""

    def fill(self, axes: Axes, metrics: Sequence[Metric], results: Results,
             entries: Sequence[Entry]) -> None:
        """Draw entries into ``axes``."""
        names = [str(entry.x) for entry in entries]
        found = [estimate_of(results, entry, metrics[0]) for entry in entries]
        values = [each and each.value for each in found]
        reach = [reach_of(each) for each in found]
        colours = [_OF_SYSTEM.get(name, COLOURS[-1]) for name in names]
        bars = axes.bar(names, [value or 0 for value in values], 0.7, color=colours,
                        yerr=reach if any(reach) else None, ecolor="0.25", capsize=2.5,
                        error_kw={"elinewidth": 1})
        axes.bar_label(bars, ["n/a" if value is None else f"{value:.2f}" for value in values],
                       fontsize=8, padding=7)  # above a marker of the same height
        axes.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1.24 * max([1.0, *((value or 0) + more
                                             for value, more in zip(values, reach))]))
        axes.tick_params(axis="x", labelsize=8)
        for label in axes.get_xticklabels() if len(names) > 6 else ():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        axes.set_ylabel(self.y_label, fontsize=8)
