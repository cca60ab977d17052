"""The tornado plot: how far each doubtful constant moves the speedup of the full system."""

from pathlib import Path

from matplotlib.figure import Figure as Canvas

from sim.experiments.figures.picture import COLOURS, save
from sim.experiments.figures.sensitivity import pairs, swings, width
from sim.experiments.points.setting import Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["draw_tornado"]

_SHOWN = 10
"""Constants of a panel; the CSV has all."""
_LEAST = 0.001
"""Of the speedup; what moves it less is not drawn."""


def draw_tornado(setting: Setting, results: Results, path: str | Path) -> None:
    """Draw a panel for each software profile and workload to ``path``, a PNG."""
    cases = pairs(setting)
    canvas = Canvas(figsize=(11, 1.2 + 3.0 * ((len(cases) + 1) // 2)), layout="constrained")
    panels = canvas.subplots((len(cases) + 1) // 2, 2, squeeze=False)
    for axes, (software, workload) in zip(panels.flat, cases):
        as_is, found = swings(setting, results, software, workload)
        base = "bl-paper" if software == "eager" else "bl-tuned"
        axes.set_title(f"{workload}, {software} software, over {base}"
                       + ("" if as_is is None else f": {as_is:.2f}x"), fontsize=10, loc="right")
        axes.spines[["top", "right"]].set_visible(False)
        shown = [swing for swing in found if swing.low is not None and swing.high is not None]
        moving = [swing for swing in shown if as_is and width(swing, as_is) >= _LEAST * as_is]
        if as_is is None or not moving:
            text = "no constant moves it" if as_is and shown else "not measured"
            axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
            continue
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
    handles = {label: handle for axes in panels.flat
               for handle, label in zip(*axes.get_legend_handles_labels())}
    if handles:
        canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2,
                      fontsize=9, frameon=False)
    dataset = setting.datasets[0]
    canvas.suptitle("tornado: what the speedup of the full system hangs on\n\n", fontsize=12,
                    fontweight="bold")
    canvas.text(0.5, 1 - 0.33 / canvas.get_figheight(),
                f"{dataset}, {setting.nodes} nodes, mini-batch {setting.mini_batch(dataset):,}, "
                f"NIC fidelity {setting.fidelity}, {setting.gpu}; unverified [U] and second-hand "
                f"[S2] constants, the {_SHOWN} strongest", ha="center", va="top", fontsize=9)
    save(canvas, path)
