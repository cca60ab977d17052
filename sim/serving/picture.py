"""Picture of ``serve``: p99 over load, one line per system, with the bounds."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sim.experiments.figures.picture import COLOURS, grid, save
from sim.serving.table import said_qps, said_us

__all__ = ["draw_serve"]

_MARKERS = "osD^vP*X"
_ROOM = 1.3
"""Margin of the axes around the data, as a factor."""


def draw_serve(result: dict, path: str | Path) -> None:
    """Draw a result of :func:`sim.serving.serve.serve` to a file (PNG, SVG or PDF)."""
    options = result["options"]
    nodes = "1 node" if options["nodes"] == 1 else f"{options['nodes']} nodes"
    arrivals = "Poisson" if options["arrivals"] == "poisson" else (
        f"bursts of {options['burst_rate']:g} x the mean rate, {said_us(options['burst_us'])}, "
        f"{100 * options['burst_share']:g} % of the time")
    save(grid([options["dataset"]], [""], "99th percentile of a request's latency",
              f"{nodes} \N{MIDDLE DOT} {options['software']} software \N{MIDDLE DOT} {arrivals} "
              f"\N{MIDDLE DOT} at most {options['in_flight']} mini-batches in flight\n"
              "each system chooses mini-batch and timeout; lines end at saturation; "
              "bars: load within a bound",
              lambda axes, *_: _draw(axes, result), height=4.4), path)


def _draw(axes: Axes, result: dict) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    slos = sorted({row["slo_us"] for row in result["slos"]})
    drawn = [*slos]
    systems = list(dict.fromkeys(row["system"] for row in result["loads"]))
    for number, system in enumerate(systems):
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        bounds = [row for row in result["slos"] if row["system"] == system and row["qps"]]
        rows = [row for row in result["loads"] if row["system"] == system and row["p99_us"]]
        rows = sorted({row["qps"]: row for row in (*rows, *bounds)}.values(),
                      key=lambda row: row["qps"])
        if rows:
            axes.plot([row["qps"] for row in rows], [row["p99_us"] for row in rows], label=system,
                      color=colour, marker=marker, markersize=4, linewidth=1.4)
        drawn += [row["p99_us"] for row in rows]
        for row in bounds:
            axes.plot([row["qps"]], [row["slo_us"]], marker="|", markersize=14, markeredgewidth=2,
                      color=colour, linestyle="none")
    for slo in slos:
        axes.axhline(slo, color="0.4", linewidth=0.8, linestyle=":")
        axes.text(1.01, slo, said_us(slo), transform=axes.get_yaxis_transform(), fontsize=8,
                  va="center", color="0.3")
    if drawn:
        axes.set_ylim(min(drawn) / _ROOM, max(drawn) * _ROOM)
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: said_qps(x)))
    axes.yaxis.set_major_locator(LogLocator(10))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: said_us(y)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("requests per second, all nodes", fontsize=9)
    axes.set_ylabel("p99, from arrival to prediction", fontsize=9)
