"""Picture of ``serve``: p99 over load, one line per system, with the bounds."""

from pathlib import Path

from sim.page.chart import COLOURS, Axis, Chart, Panel, Series, colour_of
from sim.page.png import write_png
from sim.serving.table import said_qps, said_us

__all__ = ["chart_of", "draw_serve"]


def draw_serve(result: dict, path: str | Path) -> None:
    """Draw a result of :func:`sim.serving.serve.serve` to a file (PNG, SVG or PDF)."""
    write_png(chart_of(result), path)


def chart_of(result: dict) -> Chart:
    """Return the chart: a line for each system, and a dotted line for each bound."""
    options = result["options"]
    nodes = "1 node" if options["nodes"] == 1 else f"{options['nodes']} nodes"
    arrivals = "Poisson" if options["arrivals"] == "poisson" else (
        f"bursts of {options['burst_rate']:g} x the mean rate, {said_us(options['burst_us'])}, "
        f"{100 * options['burst_share']:g} % of the time")
    return Chart(
        name="serve", title="99th percentile of a request's latency", height=4.6, panels=[
            _panel(result)],
        setting=f"{options['dataset']} \N{MIDDLE DOT} {nodes} \N{MIDDLE DOT} "
                f"{options['software']} software \N{MIDDLE DOT} {arrivals} \N{MIDDLE DOT} at most "
                f"{options['in_flight']} mini-batches in flight\n"
                "each system chooses mini-batch and timeout; lines end at saturation; "
                "dotted: bounds; diamonds: load within a bound")


def _panel(result: dict) -> Panel:
    series = []
    for system in dict.fromkeys(row["system"] for row in result["loads"]):
        bounds = [row for row in result["slos"] if row["system"] == system and row["qps"]]
        rows = {row["qps"]: row for row in result["loads"]
                if row["system"] == system and row["p99_us"]}
        rows = [row for _, row in sorted((rows | {row["qps"]: row for row in bounds}).items())]
        colour = colour_of(system)
        series += [
            Series(name=system, colour=colour, x=[row["qps"] for row in rows],
                   y=[row["p99_us"] for row in rows]),
            Series(name=f"{system} within a bound", kind="point", marker="diamond", legend=False,
                   colour=colour, x=[row["qps"] for row in bounds],
                   y=[row["slo_us"] for row in bounds])]
    loads = sorted(x for each in series for x in each.x)
    for slo in sorted({row["slo_us"] for row in result["slos"]}) if loads else ():
        series.append(Series(
            name=f"bound {said_us(slo)}", marker="", dotted=True, legend=False, colour=COLOURS[7],
            x=[loads[0], loads[-1]], y=[slo, slo], labels=["", said_us(slo)]))
    tens = [10.0 ** power for power in range(9)]
    return Panel(series=series,
                 x=Axis("requests per second, all nodes", log=True, ticks=_within(tens, loads),
                        names=[said_qps(ten) for ten in _within(tens, loads)]),
                 y=Axis("p99, from arrival to prediction, us", log=True))


def _within(tens: list[float], values: list[float]) -> list[float]:
    """Return the powers of ten that the values span."""
    return [ten for ten in tens if values and values[0] / 10 < ten < values[-1] * 10]
