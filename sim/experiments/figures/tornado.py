"""Tornado plot: effect of each uncertain constant, and of each of our choices, on the speedup."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.experiments.figures.row import Row
from sim.experiments.figures.sensitivity import (
    BASE_OF,
    FACTORS,
    Swing,
    pairs,
    sensitivity_points,
    sensitivity_rows,
    swings,
    width,
)

__all__ = ["EXHIBIT"]

_SHOWN = 7
"""Constants in a panel; the CSV has all. Every choice is shown."""
_CHOICES = 7
_APART = 0.02
"""Share of the speedup; a choice with a smaller effect has no label, which would cover others."""
_LEAST = 0.001
"""Share of the speedup; a constant with a smaller effect is not drawn."""


@dataclass(frozen=True)
class _Tornado(Figure):
    """Every uncertain constant halved and doubled, and every choice changed."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points of the sensitivity sweep."""
        return sensitivity_points(setting)

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the nominal speedup, and the speedup with each change."""
        return sensitivity_rows(setting, results)

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw a column of panels for each data set, a row for each software and workload."""
        cases = {f"{workload}, {software}, over {BASE_OF[software]}": (software, workload)
                 for software, workload in pairs(setting)}

        def fill(axes: Axes, dataset: str, name: str) -> None:
            _fill(axes, *swings(setting, results, dataset, *cases[name]))

        canvas = grid(setting.datasets, list(cases), self.heading,
                      f"{setting.nodes} nodes, NIC fidelity {setting.fidelity}, {setting.gpu}; "
                      f"constants [status], the {_SHOWN} strongest of each panel, and our choices",
                      fill, height=3.2, width=6.0)
        save(canvas, path)


def _fill(axes: Axes, as_is: float | None, found: Sequence[Swing]) -> None:
    """Draw a panel: the strongest constants on top, then the choices."""
    there = [swing for swing in found if swing.known]
    if as_is is None or not there:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
        return
    constants = [swing for swing in there if swing.knob.status
                 and width(swing, as_is) >= _LEAST * as_is][:_SHOWN]
    choices = sorted((swing for swing in there if not swing.knob.status),
                     key=lambda swing: swing.name)
    for place, swing in enumerate((*constants, *choices)):
        if swing.knob.status:
            for label, colour in zip(FACTORS, COLOURS):
                axes.barh(place, swing.known.get(label, as_is) - as_is, 0.7, left=as_is,
                          color=colour, label=label)
            continue
        ends = [as_is, *swing.known.values()]
        axes.barh(place, max(ends) - min(ends), 0.5, left=min(ends), color=COLOURS[7], alpha=0.6,
                  label="another choice")
        for label, value in swing.known.items():
            axes.plot(value, place, marker="|", markersize=9, color="black")
            if swing.name != "seed" and abs(value - as_is) > _APART * as_is:
                axes.annotate(label, (value, place), (0, 5), textcoords="offset points",
                              fontsize=6.5, ha="center")
    axes.set_yticks(range(len(constants) + len(choices)),
                    [*(f"{swing.name} [{swing.knob.status}]" for swing in constants),
                     *(swing.name for swing in choices)], fontsize=8)
    axes.axvline(as_is, color="0.2", linewidth=1)
    axes.set_ylim(_SHOWN + _CHOICES - 0.4, -0.8)
    axes.grid(axis="x", color="0.9")
    axes.use_sticky_edges = False  # margin beside the bars
    axes.margins(x=0.08)
    axes.set_xlabel("speedup of FS", fontsize=9)
    axes.text(0.98, 0.03, f"nominal: {as_is:.2f}x", ha="right", transform=axes.transAxes,
              fontsize=8, fontweight="bold")


EXHIBIT = _Tornado(
    "tornado", "Sensitivity of the full system's speedup",
    about="Every unverified or second-hand constant, halved and doubled, one at a time, for the "
          "full system and its baseline. Below them our choices: placement (default even), "
          "mini-batches in flight, host threads and NCCL communicators of a GPU (default: the "
          "fastest for each system), mini-batches of a window (default 16), "
          "and the seed.")
