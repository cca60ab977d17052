"""Panels of stacked bars: the phases of a mini-batch that is served alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from host.systems import PHASES
from sim.evaluation.store import Results
from sim.experiments.figures.picture import COLOURS
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, value_of
from sim.experiments.figures.plots.panel import Panel

__all__ = ["PHASE_METRICS", "Stacked"]

PHASE_METRICS = tuple(Metric(f"phase_{phase}", f"phases_us.{phase}", "us") for phase in PHASES)
"""The metrics of such a plot, from the lowest part of a bar to the highest."""

_LIGHT = (*COLOURS[:7], "#F0E442", "#BBBBBB")
"""Colours of areas, large enough for yellow to be seen."""


@dataclass(frozen=True)
class Stacked(Panel):
    """All metrics, which must be `PHASE_METRICS`, on top of each other.

    Members: ``x_label`` of the axis.
    """

    x_label: str

    def fill(self, axes: Axes, metrics: Sequence[Metric], results: Results,
             entries: Sequence[Entry]) -> None:
        """Draw entries into ``axes``."""
        names = [str(entry.x) for entry in entries]
        floor = [0.0] * len(entries)
        for phase, metric, colour in zip(PHASES, metrics, _LIGHT):
            heights = [value_of(results, entry, metric) or 0.0 for entry in entries]
            axes.bar(names, heights, 0.75, bottom=floor, color=colour,
                     label=phase.replace("_", " "))
            floor = [low + height for low, height in zip(floor, heights)]
        for number, entry in enumerate(entries):
            if (outcome := results.get(entry.point)) is None or outcome.metrics is None:
                axes.text(number, 0, "n/a", ha="center", va="bottom", fontsize=8)
            else:
                axes.text(number, floor[number], f"{floor[number]:,.0f}", ha="center",
                          va="bottom", fontsize=7)
        axes.set_ylim(0, 1.1 * max([*floor, 1e-9]))
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel(self.x_label, fontsize=9)
        axes.set_ylabel(self.y_label, fontsize=8)

    def height(self, metrics: Sequence[Metric], results: Results, entry: Entry) -> float | None:
        """Return where the marker of an entry stands: at the sum of the phases."""
        return results.value(entry.point, "service_us")
