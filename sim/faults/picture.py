"""Picture of the fault suite: goodput over loss, and bounds of retransmission schemes."""

from pathlib import Path

from rtl.formats import BEAT_BYTES
from sim.faults.cells import SIZES
from sim.faults.table import ceiling, go_back_n, goodputs
from sim.faults.traffic import GBIT_S, OVERHEAD_BYTES
from sim.page.chart import COLOURS, Axis, Chart, Panel, Series
from sim.page.png import write_png

__all__ = ["chart_of", "draw_faults"]


def draw_faults(result: dict, path: str | Path) -> None:
    """Draw a result of :func:`sim.faults.suite.faults` to a file (PNG, SVG or PDF)."""
    write_png(chart_of(result), path)


def chart_of(result: dict) -> Chart:
    """Return the chart: a panel for each size of packets, a line for each round trip."""
    curves = goodputs(result["links"])
    return Chart(name="faults", title="Goodput of a link that loses packets", columns=len(SIZES),
                 setting="as a share of the goodput without loss; dotted lines: go-back-N, with "
                         "the wire full", height=3.6,
                 panels=[_panel(size, curves) for size in SIZES])


def _panel(size: str, curves: dict[str, list[tuple[float, float]]]) -> Panel:
    series, rates = [], []
    for colour, (name, pairs) in zip(COLOURS, (
            each for each in curves.items() if f" {size}," in each[0])):
        trip = name.rpartition(", ")[2]
        rates = [rate for rate, _ in pairs if rate]
        under_way = float(trip.split()[0]) * 1e3 * GBIT_S / 8 / (
            (1 + SIZES[size]) * BEAT_BYTES + OVERHEAD_BYTES)
        series += [
            Series(name=f"round trip {trip}", x=rates, y=[share for rate, share in pairs if rate],
                   colour=colour),
            Series(name=f"go-back-N, {trip}", marker="", dotted=True, x=rates, colour=colour,
                   y=[go_back_n(rate, under_way) for rate in rates], legend=False)]
    if rates:
        series.append(Series(name="1 - loss, the most", marker="", x=rates, colour=COLOURS[6],
                             y=[ceiling(rate) for rate in rates]))
    return Panel(title=size, series=series, x=Axis("share of packets that are lost", log=True),
                 y=Axis("goodput", bounds=(0, 1.05)))
