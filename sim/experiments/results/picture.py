"""The picture of the results page: EN over the baseline by bags per row and samples per node."""

from collections.abc import Mapping, Sequence
from math import ceil, exp, log, log2

import numpy as np

from sim.experiments.results.cases import BASE, OWN
from sim.experiments.results.rows import place_of
from sim.page.chart import Axis, Chart, Panel, Series, Shade

__all__ = ["Line", "chart_of", "line_of"]

_MARGIN = 1.6
"""Factor between the outermost points and the ends of an axis."""

_SLACK = 1e-9
"""Rounding error of a logarithm."""


class Line:
    """Least squares of the logarithm of EN's ratio, linear in the logarithms of both axes.

    Parameters: ``points``, (foreign bags per distinct foreign row, samples per node, ratio) of each
    row; at least three that are not on a line.
    """

    def __init__(self, points: Sequence[tuple[float, float, float]]):
        self._points = points
        x, y, ratio = np.log(np.array(points)).T
        self._fit, _, rank, _ = np.linalg.lstsq(
            np.column_stack([np.ones_like(x), x, y]), ratio, rcond=None)
        if rank < 3:
            raise ValueError(f"points must not lie on a line, not {points!r}")

    def at(self, x: float, y: float) -> float:
        """Return the fitted ratio."""
        return exp(float(self._fit @ [1.0, log(x), log(y)]))

    @property
    def right(self) -> int:
        """Number of points whose fitted ratio is on the same side of 1 as their own."""
        return sum((self.at(x, y) > 1) == (ratio > 1) for x, y, ratio in self._points)

    def ends(self, xs: tuple[float, float],
             ys: tuple[float, float]) -> list[tuple[float, float]]:
        """Return the ends of the line where the fitted ratio is 1, within the axes' bounds; empty
        if it does not cross them."""
        const, of_x, of_y = self._fit
        logs_x, logs_y = np.log(xs), np.log(ys)
        crossing = [(-(const + of_y * y) / of_x, y) for y in logs_y if of_x]
        crossing += [(x, -(const + of_x * x) / of_y) for x in logs_x if of_y]
        found = sorted({(round(float(x), 9), round(float(y), 9)) for x, y in crossing
                        if _within(x, logs_x) and _within(y, logs_y)})
        return [(exp(x), exp(y)) for x, y in dict.fromkeys((found[0], found[-1]))] if found else []


def _within(value: float, bounds: Sequence[float]) -> bool:
    return bounds[0] - _SLACK <= value <= bounds[1] + _SLACK


def line_of(rows: Sequence[Mapping]) -> Line | None:
    """Return the line of rows, or None if their points do not determine a line."""
    points = [(row["bags_per_row"], row["samples_per_node"], row["ratios"][OWN])
              for row in _shown(rows)]
    try:
        return Line(points) if len(points) > 2 else None
    except ValueError:
        return None


def _shown(rows: Sequence[Mapping]) -> list[Mapping]:
    return [row for row in rows if row["ratios"][OWN] and row["bags_per_row"]]


def chart_of(rows: Sequence[Mapping]) -> Chart:
    """Return the picture of rows."""
    shown = _shown(rows)
    xs, ys = (_bounds([row[name] for row in shown]) for name in ("bags_per_row",
                                                                 "samples_per_node"))
    shades = [log2(row["ratios"][OWN]) for row in shown]
    most = max(1, ceil(max(map(abs, shades), default=1)))
    step = ceil(most / 3)
    ticks = [each for each in range(-most, most + 1) if each % step == 0]
    series = [Series(
        name="a workload, cluster and mini-batch", kind="point", legend=False,
        x=[row["bags_per_row"] for row in shown], y=[row["samples_per_node"] for row in shown],
        shades=shades, labels=_labels(shown), notes=[_note(row) for row in shown])]
    line = line_of(rows)
    if line and len(ends := line.ends(xs, ys)) == 2:
        series.append(Series(name=f"EN as fast as {BASE}", kind="line", marker="",
                             x=[x for x, _ in ends], y=[y for _, y in ends], colour="#222222"))
    return Chart(name="results", title="", height=4.6, panels=[Panel(
        series=series, shade=Shade(Axis(
            f"EN over {BASE}", ticks=ticks, bounds=(-most, most),
            names=[f"{2.0 ** each:g}x" if each >= 0 else f"1/{2 ** -each}x" for each in ticks])),
        x=Axis("foreign bags per distinct foreign row of a share", log=True, bounds=xs),
        y=Axis("samples per node", log=True, bounds=ys))])


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    return (min(values) / _MARGIN, max(values) * _MARGIN) if values else (0.1, 10.0)


def _labels(rows: Sequence[Mapping]) -> list[str]:
    """Return the name of each workload at its first point, else an empty text."""
    seen: set[str] = set()
    return ["" if row["workload"] in seen or seen.add(row["workload"]) else row["workload"]
            for row in rows]


def _note(row: Mapping) -> str:
    return f"{place_of(row)}: EN {row['ratios'][OWN]:.2f}x"
