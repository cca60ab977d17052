"""Pictures of the phase map: heat maps of cells, and claims by cell."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure as Canvas

from sim.experiments.figures.picture import save
from sim.experiments.maps.cells import LINKS, MINI_BATCHES, OPERATORS, Cell
from sim.experiments.maps.verdicts import JUDGED, RATIOS, agreeing

__all__ = ["heat_maps"]

_WIDEST = 3.0
"""Speedup with the deepest colour; its inverse has the deepest colour of slowdowns."""

_VERDICTS = ListedColormap(["#F4D9C8", "#0072B2"])


def heat_maps(title: str, caption: str, found: Mapping[Cell, Mapping[str, bool | None]],
              ratios: Mapping[Cell, Mapping[str, float | None]], path: str | Path) -> None:
    """Draw the cells of one data set.

    A row of panels for each operator time shows the number of agreeing claims and each speedup. The
    last panel shows every claim in every cell.

    Parameters
    ----------
    found: verdicts by claim. ratios: speedups by name. path: the PNG.
    """
    names = [ratio.name for ratio in RATIOS]
    canvas = Canvas(figsize=(3.1 * (1 + len(names)), 3.1 * len(OPERATORS) + 0.26 * len(JUDGED) + 3),
                    layout="constrained")
    upper, lower = canvas.subfigures(2, 1, height_ratios=(
        3.1 * len(OPERATORS), 0.26 * len(JUDGED) + 2))
    panels = upper.subplots(len(OPERATORS), 1 + len(names), squeeze=False)
    for row, operator in zip(panels, OPERATORS):
        cells = [cell for cell in found if cell.operator == operator]
        counts = {cell: agreeing(found[cell]) for cell in cells}
        _heat(row[0], {cell: agree / judged if judged else None
                       for cell, (agree, judged) in counts.items()},
              lambda cell, value, counts=counts: f"{counts[cell][0]}/{counts[cell][1]}",
              "Blues", (0, 1))
        row[0].set_title(f"claims that agree,\noperator {operator} us", fontsize=9)
        for axes, name in zip(row[1:], names):
            _heat(axes, {cell: None if (value := ratios[cell][name]) is None else np.log2(value)
                         for cell in cells},
                  lambda cell, value: f"{2 ** value:.2f}x", "PuOr",
                  (-np.log2(_WIDEST), np.log2(_WIDEST)))
            axes.set_title(f"{name},\noperator {operator} us", fontsize=9)
    _claims(lower.subplots(), found)
    canvas.suptitle(f"{title}\n", fontsize=12, fontweight="bold")
    canvas.text(0.5, 1 - 0.36 / canvas.get_figheight(), caption, ha="center", va="top", fontsize=9)
    save(canvas, path)


def _heat(axes: Axes, values: Mapping[Cell, float | None],
          said: Callable[[Cell, float], str], colours: str, limits: tuple[float, float]) -> None:
    """Draw a panel: a column for each link, a row for each mini-batch; cells without values are
    white."""
    grid = np.full((len(MINI_BATCHES), len(LINKS)), np.nan)
    for cell, value in values.items():
        if value is None:
            continue
        place = MINI_BATCHES.index(cell.mini_batch), LINKS.index(cell.link)
        grid[place] = value
        deep = abs(value - limits[0] - (limits[1] - limits[0]) / 2) > 0.33 * (limits[1] - limits[0])
        dark = deep and (colours != "Blues" or value > limits[0] + 0.6 * (limits[1] - limits[0]))
        axes.text(place[1], place[0], said(cell, value), ha="center", va="center", fontsize=8,
                  color="white" if dark else "black")
    axes.imshow(grid, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    axes.set_xticks(range(len(LINKS)), map(str, LINKS), fontsize=8)
    axes.set_yticks(range(len(MINI_BATCHES)), [f"{size:,}" for size in MINI_BATCHES], fontsize=8)
    axes.set_xlabel("Gb/s", fontsize=8)
    axes.set_ylabel("mini-batch", fontsize=8)
    axes.spines[:].set_visible(False)


def _claims(axes: Axes, found: Mapping[Cell, Mapping[str, bool | None]]) -> None:
    """Draw every claim in every cell."""
    cells: Sequence[Cell] = list(found)
    grid = np.array([[np.nan if found[cell].get(name) is None else float(bool(found[cell][name]))
                      for cell in cells] for name in JUDGED])
    axes.imshow(grid, cmap=_VERDICTS, vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(len(JUDGED)), JUDGED, fontsize=8)
    axes.set_xticks(range(len(cells)), [
        f"{cell.operator} us, {cell.mini_batch:,}, {cell.link} Gb/s" for cell in cells],
        rotation=90, fontsize=7)
    axes.set_xticks(np.arange(len(cells) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(JUDGED) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("which claims agree (blue) and which do not (light), eager software, against "
                   "bl-paper; white: not measured", fontsize=9)
