"""Pictures of figures: a column for each data set, a row for each software profile."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from sim.experiments.figures.figure import PHASES_OF, Entry, Figure
from sim.experiments.figures.table import value_of
from sim.experiments.points.setting import Setting
from sim.experiments.sweep.sweep import Results

__all__ = ["COLOURS", "draw_figure", "grid", "save"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette, told apart by the colour-blind."""

_OF_SYSTEM = dict(zip(("BL-tuned", "GA", "NIC", "LC", "RC", "SC", "FS"), COLOURS))
"""A system has the same colour wherever it is a bar; the others share the last one."""

_MARKERS = "osD^vP*X"
_LIGHT = (*COLOURS[:7], "#F0E442", "#BBBBBB")
"""For areas, where yellow can be seen."""


_WIDEST = 0.97
"""Share of a picture's width that its title may take; a longer one is set smaller."""


def grid(columns: Sequence[str], rows: Sequence[str], title: str, setting: str,
         draw: Callable, height: float = 2.6) -> Canvas:
    """Return a canvas of panels; ``draw(axes, column, row)`` fills each.

    What all panels have in common is said once: ``title``, and below it the ``setting``.
    """
    canvas = Canvas(figsize=(max(7.0, 3.6 * len(columns)), 1.3 + height * len(rows)),
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
    """Write a canvas, the same bytes for the same picture."""
    canvas.savefig(path, dpi=110, metadata={"Software": None})


def draw_figure(figure: Figure, setting: Setting, results: Results, path: str | Path) -> None:
    """Draw the first metric of a figure (all of a stacked one) to ``path``, a PNG."""
    entries = [entry for entry in figure.entries(setting) if entry.drawn]
    softwares = list(dict.fromkeys(entry.point.software for entry in entries))
    columns = [dataset for dataset in setting.datasets
               if any(entry.panel == dataset for entry in entries)]
    kind = {"lines": _lines, "bars": _bars, "stacked": _stacked}[figure.kind]

    marked = figure.marked(setting)

    def draw(axes, dataset: str, software: str) -> None:
        kind(axes, figure, results, [entry for entry in entries
             if entry.panel == dataset and entry.point.software == software.split()[0]])
        found = [(entry.x, _height(results, figure, entry)) for entry in marked
                 if entry.panel == dataset and entry.point.software == software.split()[0]]
        there = [(x, value) for x, value in found if value is not None]
        if there:
            axes.plot(*zip(*there), linestyle="none", marker="D", markersize=8, color="black",
                      fillstyle="none", markeredgewidth=1.5, label="RTL")

    rows = [f"{name} software" for name in softwares]
    if len({entry.point.software for entry in entries}) < len(setting.softwares):
        draw_plain, rows = draw, [""]

        def draw(axes, dataset: str, software: str) -> None:
            draw_plain(axes, dataset, softwares[0])

    save(grid(columns, rows, f"{figure.name}: {figure.title}", _setting(entries), draw), path)


def _height(results: Results, figure: Figure, entry: Entry) -> float | None:
    """Return where the marker of an entry stands."""
    if figure.kind == "stacked":
        return results.value(entry.point, "service_us")
    return value_of(results, entry, figure.metrics[0])


def _setting(entries: list[Entry]) -> str:
    """Return what the points have in common: nodes, mini-batches, fidelity, source of samples."""
    points = [entry.point for entry in entries]

    def span(values: set[int]) -> str:
        low, high = min(values), max(values)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    batches = {}
    for point in points:
        batches.setdefault(point.dataset, set()).add(point.samples)
    same = {frozenset(sizes) for sizes in batches.values()}
    batch = span(next(iter(batches.values()))) if len(same) == 1 else ", ".join(
        f"{span(sizes)} ({dataset})" for dataset, sizes in batches.items())
    nodes = span({point.nodes for point in points})
    fidelity = " and ".join(sorted({point.fidelity for point in points}))
    source = {"a file" if point.data else "generated" for point in points}
    return (f"{nodes} node{'' if nodes == '1' else 's'}, mini-batch {batch}, NIC fidelity "
            f"{fidelity}, {points[0].gpu}, samples {' and '.join(sorted(source))}")


def _lines(axes, figure: Figure, results: Results, entries: list[Entry]) -> None:
    metric = figure.metrics[0]
    highest = 0.0
    for number, series in enumerate(dict.fromkeys(entry.series for entry in entries)):
        own = [entry for entry in entries if entry.series == series]
        found = [(entry.x, value_of(results, entry, metric)) for entry in own]
        there = [(x, value) for x, value in found if value is not None]
        axes.plot([x for x, _ in there], [value for _, value in there], label=series,
                  color=COLOURS[number % len(COLOURS)], marker=_MARKERS[number % len(_MARKERS)],
                  markersize=4.5, linewidth=1.4)
        highest = max([highest, *(value for _, value in there)])
    _missing(axes, results, entries, metric)
    if metric.ratio:
        axes.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
    places = sorted({entry.x for entry in entries})
    if figure.x_scale == "share":
        # Room for 0, which a logarithm has not, and for the small sizes.
        smallest = next((x for x in places if x), 1)
        axes.set_xscale("symlog", linthresh=smallest, linscale=0.5)
        axes.set_xlim(-0.1 * smallest, 1.15 * max(places))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}" if x else "off")
    else:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1.12 * highest or 1)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(figure.x_label, fontsize=9)
    axes.set_ylabel(figure.y_label, fontsize=8)


def _bars(axes, figure: Figure, results: Results, entries: list[Entry]) -> None:
    metric = figure.metrics[0]
    names = [str(entry.x) for entry in entries]
    values = [value_of(results, entry, metric) for entry in entries]
    colours = [_OF_SYSTEM.get(name, COLOURS[-1]) for name in names]
    bars = axes.bar(names, [value or 0 for value in values], 0.7, color=colours)
    axes.bar_label(bars, ["n/a" if value is None else f"{value:.2f}" for value in values],
                   fontsize=8, padding=5)  # above a marker of the same height
    axes.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
    axes.set_ylim(0, 1.24 * max([1.0, *(value or 0 for value in values)]))
    axes.tick_params(axis="x", labelsize=8, rotation=0 if len(names) < 7 else 45)
    axes.set_ylabel(figure.y_label, fontsize=8)


def _stacked(axes, figure: Figure, results: Results, entries: list[Entry]) -> None:
    names = [str(entry.x) for entry in entries]
    floor = [0.0] * len(entries)
    for number, phase in enumerate(PHASES_OF):
        metric = figure.metrics[number]
        heights = [value_of(results, entry, metric) or 0.0 for entry in entries]
        axes.bar(names, heights, 0.75, bottom=floor, color=_LIGHT[number],
                 label=phase.replace("_", " "))
        floor = [low + height for low, height in zip(floor, heights)]
    for number, entry in enumerate(entries):
        if (outcome := results.get(entry.point)) is None or outcome.metrics is None:
            axes.text(number, 0, "n/a", ha="center", va="bottom", fontsize=8)
        else:
            axes.text(number, floor[number], f"{floor[number]:,.0f}", ha="center", va="bottom",
                      fontsize=7)
    axes.set_ylim(0, 1.1 * max([*floor, 1e-9]))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(figure.x_label, fontsize=9)
    axes.set_ylabel(figure.y_label, fontsize=8)


def _missing(axes, results: Results, entries: list[Entry], metric) -> None:
    """Say in a panel how many of its points have no value."""
    none = sum(value_of(results, entry, metric) is None for entry in entries)
    if none:
        axes.text(0.98, 0.02, f"{none} of {len(entries)} points: none", fontsize=7, ha="right",
                  transform=axes.transAxes)
