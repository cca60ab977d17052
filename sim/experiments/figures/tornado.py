"""The tornado plot: how far each doubtful constant moves the speedup of the full system."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, save
from sim.experiments.figures.row import Row
from sim.experiments.figures.sensitivity import (
    BASE_OF,
    pairs,
    sensitivity_points,
    sensitivity_rows,
    swings,
    width,
)
from sim.experiments.points.point import Point
from sim.experiments.points.setting import Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["EXHIBIT"]

_SHOWN = 10
"""Constants of a panel; the CSV has all."""
_LEAST = 0.001
"""Share of the speedup; a constant that moves it less is not drawn."""


@dataclass(frozen=True)
class _Tornado(Figure):
    """Every doubtful constant halved and doubled, the strongest on top."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points of the sensitivity sweep."""
        return sensitivity_points(setting)

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the speedup as it is and with each constant changed."""
        return sensitivity_rows(setting, results)

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw a panel for each software profile and workload."""
        cases = pairs(setting)
        canvas = Canvas(figsize=(11, 1.2 + 3.0 * ((len(cases) + 1) // 2)), layout="constrained")
        panels = canvas.subplots((len(cases) + 1) // 2, 2, squeeze=False)
        for axes, case in zip(panels.flat, cases):
            _fill(axes, setting, results, *case)
        handles = {label: handle for axes in panels.flat
                   for handle, label in zip(*axes.get_legend_handles_labels())}
        if handles:
            canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2,
                          fontsize=9, frameon=False)
        dataset = setting.datasets[0]
        canvas.suptitle(f"{self.name}: {self.title[0].lower()}{self.title[1:]}\n\n", fontsize=12,
                        fontweight="bold")
        canvas.text(0.5, 1 - 0.33 / canvas.get_figheight(),
                    f"{dataset}, {setting.nodes} nodes, "
                    f"mini-batch {setting.mini_batch(dataset):,}, "
                    f"NIC fidelity {setting.fidelity}, {setting.gpu}; unverified [U] and "
                    f"second-hand [S2] constants, the {_SHOWN} strongest",
                    ha="center", va="top", fontsize=9)
        save(canvas, path)


def _fill(axes: Axes, setting: Setting, results: Results, software: str, workload: str) -> None:
    """Draw the panel of a software profile and a workload."""
    as_is, found = swings(setting, results, software, workload)
    axes.set_title(f"{workload}, {software} software, over {BASE_OF[software]}"
                   + ("" if as_is is None else f": {as_is:.2f}x"), fontsize=10, loc="right")
    axes.spines[["top", "right"]].set_visible(False)
    there = [swing for swing in found if swing.low is not None and swing.high is not None]
    moving = [swing for swing in there if as_is and width(swing, as_is) >= _LEAST * as_is]
    if as_is is None or not moving:
        text = "no constant moves it" if as_is and there else "not measured"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
        return
    shown = moving[:_SHOWN]
    names = [f"{swing.name} [{swing.status}]" for swing in shown]
    for values, colour, label in (([swing.low for swing in shown], COLOURS[0], "halved"),
                                  ([swing.high for swing in shown], COLOURS[1], "doubled")):
        axes.barh(names, [(value or as_is) - as_is for value in values], 0.7, left=as_is,
                  color=colour, label=label)
    axes.axvline(as_is, color="0.2", linewidth=1)
    axes.invert_yaxis()
    axes.tick_params(labelsize=8)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.set_xlabel("speedup of FS", fontsize=9)


EXHIBIT = _Tornado(
    "tornado", "What the speedup of the full system hangs on",
    about="Every constant that is unverified or known at second hand, halved and doubled, each "
          "alone; the baseline is charged it alike.")
