"""Picture of the fault suite: goodput over loss, and bounds of retransmission schemes."""

from pathlib import Path

from matplotlib.axes import Axes

from rtl.formats import BEAT_BYTES
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.faults.cells import SIZES
from sim.faults.table import ceiling, go_back_n, goodputs
from sim.faults.traffic import GBIT_S, OVERHEAD_BYTES

__all__ = ["draw_faults"]


def draw_faults(result: dict, path: str | Path) -> None:
    """Draw a result of :func:`sim.faults.suite.faults` to a file (PNG, SVG or PDF)."""
    curves = goodputs(result["links"])
    save(grid(list(SIZES), [""], "Goodput of a link that loses packets",
              "as a share of the goodput without loss, at round trips of the network of 1 to 50 us",
              lambda axes, size, _: _draw(axes, size, curves), height=3.6, width=4.6), path)


def _draw(axes: Axes, size: str, curves: dict[str, list[tuple[float, float]]]) -> None:
    mine = {name: pairs for name, pairs in curves.items() if f" {size}," in name}
    for number, (name, pairs) in enumerate(mine.items()):
        trip = name.rpartition(", ")[2]
        lossy = [(rate, share) for rate, share in pairs if rate]
        axes.plot(*zip(*lossy), "o-", label=trip, color=COLOURS[number], markersize=4)
        under_way = float(trip.split()[0]) * 1e3 * GBIT_S / 8 / (
            (1 + SIZES[size]) * BEAT_BYTES + OVERHEAD_BYTES)
        axes.plot([rate for rate, _ in lossy], [go_back_n(rate, under_way) for rate, _ in lossy],
                  ":", color=COLOURS[number],
                  label="go-back-N, with the wire full" if not number else None)
    if mine:
        rates = [rate for rate, _ in next(iter(mine.values())) if rate]
        axes.plot(rates, [ceiling(rate) for rate in rates], "--", color="0.4",
                  label="1 - loss, the most")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("share of packets that are lost", fontsize=9)
    axes.set_ylabel("goodput", fontsize=9)
