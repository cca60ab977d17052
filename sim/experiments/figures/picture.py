"""Pictures: a grid of panels below a title, and its output file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from sim.files.pictures import write_picture

__all__ = ["COLOURS", "grid", "save"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""

_WIDEST = 0.97
"""Share of a picture's width that its title may take; a longer title is set in smaller type."""


def grid(columns: Sequence[str], rows: Sequence[str], title: str, setting: str,
         draw: Callable, height: float = 2.6, width: float = 3.6) -> Canvas:
    """Return a canvas of panels; ``draw(axes, column, row)`` fills each.

    Values that all panels share are in ``title`` and, below it, in ``setting``.
    """
    canvas = Canvas(figsize=(max(7.0, width * len(columns)), 1.3 + height * len(rows)),
                    layout="constrained")
    panels = canvas.subplots(len(rows), len(columns), squeeze=False)
    for row, name in enumerate(rows):
        for column, dataset in enumerate(columns):
            axes = panels[row][column]
            draw(axes, dataset, name)
            axes.set_title(" \N{MIDDLE DOT} ".join(filter(None, (dataset, name))), fontsize=10)
            axes.grid(axis="y", color="0.9")
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=9)
            if column:
                axes.set_ylabel("")
            if row < len(rows) - 1:
                axes.set_xlabel("")
    handles = {}
    for axes in panels.flat:
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    if handles:
        canvas.legend(handles.values(), handles.keys(), loc="outside lower center",
                      ncols=min(len(handles), 2 * len(columns) + 1), fontsize=9,
                      frameon=False)
    heading = canvas.suptitle(f"{title}\n\n", fontsize=12, fontweight="bold")
    if (share := heading.get_window_extent().width / canvas.bbox.width) > _WIDEST:
        heading.set_fontsize(12 * _WIDEST / share)
    canvas.text(0.5, 1 - 0.33 / canvas.get_figheight(), setting, ha="center", va="top", fontsize=9)
    return canvas


def save(canvas: Canvas, path: str | Path) -> None:
    """Write a canvas; the bytes are reproducible."""
    write_picture(canvas, path, dpi=110, metadata={"Software": None})
