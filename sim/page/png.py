"""Charts as PNG, drawn by Matplotlib; the bytes are reproducible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from sim.files.pictures import write_picture
from sim.page.chart import Axis, Chart, Panel, Series, Shade

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["canvas_of", "write_png"]

_WIDEST = 0.97
"""Share of a picture's width that its title may take; a longer title is set in smaller type."""
_MARKERS = {"circle": "o", "diamond": "D", "ring": "D", "": ""}


def write_png(chart: Chart, path: str | PathLike[str]) -> None:
    """Draw ``chart`` to ``path``; its suffix may also be ``.svg`` or ``.pdf``."""
    write_picture(canvas_of(chart), path, dpi=110, metadata={"Software": None} if str(
        path).endswith(".png") else {})


def canvas_of(chart: Chart) -> Canvas:
    """Return a chart as a canvas of Matplotlib, its panels row by row."""
    from matplotlib.figure import Figure

    columns = chart.columns
    heights = [max(panel.height or chart.height for panel in chart.panels[at:at + columns])
               for at in range(0, len(chart.panels), columns)]
    canvas = Figure(figsize=(max(7.0, 3.6 * columns), 1.3 + sum(heights)), layout="constrained")
    panels = canvas.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    handles = {}
    for axes, panel in zip(panels.flat, chart.panels):
        axes.grid(axis="y", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        _fill(axes, panel)
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    for axes in panels.flat[len(chart.panels):]:
        axes.remove()
    if len(handles) > 1:
        canvas.legend(handles.values(), handles.keys(), loc="outside lower center",
                      ncols=min(len(handles), 2 * columns + 1), fontsize=9, frameon=False)
    heading = canvas.suptitle(f"{chart.title}\n\n", fontsize=12, fontweight="bold")
    if (share := heading.get_window_extent().width / canvas.bbox.width) > _WIDEST:
        heading.set_fontsize(12 * _WIDEST / share)
    canvas.text(0.5, 1 - 0.33 / canvas.get_figheight(), chart.setting, ha="center", va="top",
                fontsize=9)
    return canvas


def _fill(axes: Axes, panel: Panel) -> None:
    """Draw a panel."""
    axes.set_title(panel.title, fontsize=10)
    if panel.horizontal:
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color="0.9")
    floor: dict[Any, float] = {}
    bars = [each for each in panel.series if each.kind == "bar"]
    for each in panel.series:
        if each.kind == "bar":
            apart = not panel.stacked and not each.base
            wide = 0.75 / len(bars) if apart else 0.75
            shift = (bars.index(each) - (len(bars) - 1) / 2) * wide if apart else 0.0
            _bars(axes, each, panel, wide, shift, floor)
        elif each.kind == "cell":
            _cells(axes, each, panel)
        else:
            _points(axes, each, panel)
    if panel.level is not None:
        (axes.axvline if panel.horizontal else axes.axhline)(
            panel.level, color="0.4", linewidth=0.8, linestyle=":")
    _scale(axes, panel.x, "x", panel.series)
    _scale(axes, panel.y, "y", panel.series)
    if (room := panel.room) is not None:
        (axes.set_xlim if panel.horizontal else axes.set_ylim)(0, room)
    if panel.horizontal:
        axes.invert_yaxis()
    if panel.note:
        axes.text(0.98, 0.02, panel.note, fontsize=7, ha="right", transform=axes.transAxes)


def _categories(panel: Panel) -> list[str]:
    """Return the categories of a panel, in order."""
    along = "y" if panel.horizontal else "x"
    return list(dict.fromkeys(value for each in panel.series for value in getattr(each, along)
                              if isinstance(value, str)))


def _places(series: Series, panel: Panel) -> list[Any]:
    """Return the positions of values across the axis of values; categories are numbered."""
    names = {name: at for at, name in enumerate(_categories(panel))}
    return [names.get(value, value) if isinstance(value, str) else value
            for value in (series.y if panel.horizontal else series.x)]


def _bars(axes: Axes, series: Series, panel: Panel, wide: float, shift: float,
          floor: dict[Any, float]) -> None:
    values = list(series.x if panel.horizontal else series.y)
    places = _places(series, panel)
    base = list(series.base) or [floor.get(place, 0.0) if panel.stacked else 0.0
                                 for place in places]
    lengths = [0.0 if value is None else float(value) for value in values]
    given: dict[str, Any] = {"color": series.colour, "label": _label(series)}
    reach = _reach(series, values)
    if reach is not None:
        given |= {"xerr" if panel.horizontal else "yerr": reach, "ecolor": "0.25", "capsize": 2.5}
    at = [place + shift for place in places]
    axes.use_sticky_edges = not series.base  # a margin beside bars that begin elsewhere
    drawn = axes.barh(at, lengths, wide, left=base, **given) if panel.horizontal else axes.bar(
        at, lengths, wide, bottom=base, **given)
    for place, start, length in zip(places, base, lengths):
        floor[place] = start + length
    if series.labels:
        axes.bar_label(drawn, series.labels, fontsize=8, padding=4,
                       label_type="edge" if not panel.stacked else "center")


def _points(axes: Axes, series: Series, panel: Panel) -> None:
    places = _places(series, panel)
    xs, ys = (list(series.x), places) if panel.horizontal else (places, list(series.y))
    there = [at for at, pair in enumerate(zip(xs, ys)) if None not in pair]
    xs, ys = ([values[at] for at in there] for values in (xs, ys))
    if series.shades and panel.shade is not None:
        _shaded(axes, series, panel.shade, xs, ys, [series.shades[at] for at in there])
        return
    tick = "|" if panel.horizontal else "_"
    axes.plot(xs, ys, label=_label(series), color=series.colour,  # type: ignore[arg-type]
              marker=_MARKERS.get(series.marker, tick),
              markersize={"tick": 16, "ring": 8}.get(series.marker, 4.5),
              fillstyle="none" if series.marker == "ring" else "full",
              markeredgewidth=1.5 if series.marker in ("tick", "ring") else 1,
              linestyle=":" if series.dotted else "-" if series.kind == "line" else "none",
              linewidth=1.4)
    reach = _reach(series, list(series.x if panel.horizontal else series.y))
    if reach is not None:
        axes.errorbar(xs, ys, **{"xerr" if panel.horizontal else "yerr": [
            [side[at] for at in there] for side in reach]}, linestyle="none",
            color=series.colour, capsize=2.5, elinewidth=1)
    for at, (x, y) in zip(there, zip(xs, ys)):
        if series.labels:
            axes.annotate(series.labels[at], (x, y), (0, 5), textcoords="offset points",
                          fontsize=7, ha="center")


def _cells(axes: Axes, series: Series, panel: Panel) -> None:
    """Draw a field for each value, with its label."""
    assert panel.shade is not None
    colour = _colours(panel.shade)
    places = [[names.index(value) for value in values] for values in (series.x, series.y)
              for names in [list(dict.fromkeys(values))]]
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.barh(places[1], 1, 1, left=[x - 0.5 for x in places[0]], edgecolor="white", linewidth=1.5,
              color=[colour(value) for value in series.shades])
    for x, y, label, shade in zip(*places, series.labels, series.shades):
        dark = sum(colour(shade)[:3]) < 1.5
        axes.text(x, y, label, ha="center", va="center", fontsize=8,
                  color="white" if dark else "black")
    axes.set_ylim(max(places[1]) + 0.5, -0.5)
    axes.set_xlim(-0.5, max(places[0]) + 0.5)


def _colours(shade: Shade) -> Callable[[float], tuple]:
    """Return the colour of a value, as red, green, blue and opacity."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = shade.axis.bounds or (0, 1)
    colours = LinearSegmentedColormap.from_list("", shade.colours)
    return lambda value: colours((value - low) / (high - low))


def _shaded(axes: Axes, series: Series, shade: Shade, xs: list, ys: list,
            shades: list[float]) -> None:
    """Draw points in the colours of ``shade``, and its colour bar."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = shade.axis.bounds or (0, 1)
    drawn = axes.scatter(xs, ys, c=shades, vmin=low, vmax=high, s=60, edgecolors="0.3",
                         cmap=LinearSegmentedColormap.from_list("", shade.colours),
                         linewidths=0.6, label=_label(series))
    bar = axes.figure.colorbar(drawn, ax=axes, label=shade.axis.label)  # type: ignore[union-attr]
    if shade.axis.ticks:
        bar.set_ticks(list(shade.axis.ticks), labels=shade.axis.shown)


def _label(series: Series) -> str | None:
    return series.name if series.legend else None


def _reach(series: Series, values: list) -> list[list[float]] | None:
    """Return the lengths of whiskers below and above, or None if no value has an interval."""
    if not any(end is not None for end in series.high):
        return None
    return [[0.0 if end is None or value is None else abs(end - value)
             for end, value in zip(ends, values)] for ends in (series.low, series.high)]


def _scale(axes: Axes, axis: Axis, along: str, series: Sequence[Series]) -> None:
    """Set label, scale, ticks and bounds of an axis."""
    from matplotlib.ticker import NullLocator

    getattr(axes, f"set_{along}label")(axis.label, fontsize=9 if along == "x" else 8)
    own = getattr(axes, f"{along}axis")
    if axis.log:
        getattr(axes, f"set_{along}scale")("log")
    names = list(dict.fromkeys(value for each in series for value in getattr(each, along)
                               if isinstance(value, str)))
    if names:
        own.set_ticks(range(len(names)), names, fontsize=8)
        if along == "x" and len(names) > 6 and max(map(len, names)) > 5:
            for label in axes.get_xticklabels():
                label.set(rotation=45, ha="right", rotation_mode="anchor")
    elif axis.ticks:
        own.set_ticks(list(axis.ticks), axis.shown)
        own.set_minor_locator(NullLocator())
    if axis.bounds is not None:
        getattr(axes, f"set_{along}lim")(*axis.bounds)
