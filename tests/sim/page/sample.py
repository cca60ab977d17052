"""A page with a chart of every kind."""

from markupsafe import Markup

from sim.page.chart import Axis, Chart, Panel, Series, Shade
from sim.page.content import Column, Figure, Page, Section, Table, Text

__all__ = ["CHARTS", "PAGE"]

_SYSTEMS = ("en", "bl-tuned", "fs")

BARS = Chart(name="bars", title="Bars", setting="kaggle <b>, 4 nodes", panels=[Panel(
    horizontal=True, x=Axis("us"), level=2, series=[
        Series(name="interval <i>", kind="bar", x=[13.1, 15.3, 23.8], y=_SYSTEMS,
               colour=["#009E73", "#0072B2", "#D55E00"], labels=["13.1", "15.3", "23.8"]),
        Series(name="bound", kind="point", marker="tick", x=[10.4, 14, 23.8], y=_SYSTEMS,
               colour="#000000", notes=["nic", "cpu", "nic"])])])
LINES = Chart(name="lines", title="Lines", columns=2, panels=[Panel(
    title=name, x=Axis("nodes", log=True, ticks=(2, 4, 8)), y=Axis("speedup", bounds=(0, 5)),
    level=1, note="a note", series=[
        Series(name="fs", x=[2, 4, 8], y=[1, 2, None], low=[0.9, 1.5, None],
               high=[1.1, 2.5, None]),
        Series(name="RTL", kind="point", marker="ring", x=[4], y=[2.1], colour="#000000")])
    for name in ("kaggle", "avazu", "terabyte")])
STACKED = Chart(name="stacked", title="Stacked", panels=[Panel(stacked=True, series=[
    Series(name=name, kind="bar", x=["a\n<1>", "b"], y=[1, 2], labels=["1", "2"])
    for name in ("gather", "network")])])
GROUPED = Chart(name="grouped", title="Grouped", panels=[Panel(series=[
    Series(name=name, kind="bar", x=["a", "b"], y=[1, 2], low=[0.5, 1], high=[2, 3])
    for name in ("gather", "network")])])
RANGES = Chart(name="ranges", title="Ranges", panels=[Panel(horizontal=True, series=[
    Series(name="halved", kind="bar", x=[-0.5, 0.2], y=["link", "kernel"], base=[2, 2])])])
PLANE = Chart(name="plane", title="Plane", panels=[Panel(
    x=Axis("bags", log=True), y=Axis("samples", log=True),
    shade=Shade(Axis("ratio", ticks=(-1, 0, 1), names=("1/2", "1", "2"), bounds=(-1, 1))), series=[
        Series(name="workloads", kind="point", x=[0.1, 1, 30], y=[16, 100, 4000],
               shades=[-0.8, 0.1, 0.9], notes=["x", "y", "z"], legend=False),
        Series(name="ratio 1", kind="line", marker="", dotted=True, x=[0.1, 30], y=[1000, 20])])])

CELLS = Chart(name="cells", title="Cells", panels=[Panel(
    height=2, shade=Shade(Axis(bounds=(0, 1)), bar=False), x=Axis("link"), series=[
        Series(name="ratios", kind="cell", x=["10", "25", "10"], y=["128", "128", "<512>"],
               shades=[0.1, 0.5, 0.9], labels=["0.1x", "0.5x", "<0.9x>"])])])

CHARTS = (BARS, LINES, STACKED, GROUPED, RANGES, PLANE, CELLS)

PAGE = Page(
    "A <title>", "en is faster than <bl-tuned>.", Figure(BARS, "us: microseconds."), [
        Section("Systems <s>", [
            Table(["system", Column("us", ",.1f", "micro<seconds>"), "good"], [
                ["en", 1013.1, True], ["bl-tuned", 15.3, False], ["fs", None, None]], "Rows <r>."),
            Markup("<p>as <em>HTML</em></p>")]),
        Section("", [Text(["one <1>", "two"], bullets=True), Text(["three"]),
                     *(Figure(chart, command=f"draw {chart.name}") for chart in CHARTS[1:])])],
    [("model <m>", "kaggle <k>")])
