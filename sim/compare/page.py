"""The page of a comparison, with its pictures, CSV and JSON."""

from pathlib import Path

from gen.base.files import write_whole
from sim.compare.table import heading
from sim.compare.words import ABOUT, OPTIONS, RESOURCES, used
from sim.evaluation.compared import choices
from sim.files.outputs import write_json
from sim.page.chart import Axis, Chart, Panel, Series, colour_of
from sim.page.content import Column, Figure, Page, Section, Table, Text
from sim.page.html import render
from sim.page.png import write_png
from sim.page.rows import Row, csv_text

__all__ = ["FILES", "write_page"]

FILES = ("index.html", "systems.png", "resources.png", "systems.csv", "compare.json")
"""Files of the folder, the page first."""

_COLUMNS = (
    "system", Column("us", ",.1f", "microseconds from one mini-batch to the next"),
    Column("times bl-tuned", ".2f", "speed over that of bl-tuned; above 1 is faster"),
    Column("us alone", ",.1f", "microseconds of a mini-batch that runs alone"),
    Column("bottleneck", about="the busiest resource"),
    Column("its us", ",.1f", "busy time of the bottleneck per mini-batch, a lower bound of us"),
    Column("samples/s", ",.0f", "samples per second"),
    Column("network B", ",.0f", "bytes per sample on the network"),
    Column("GPU GB", ",.2f", "rows, copies of rows and MLPs of the fullest node, 1e9 bytes"))

_UNITS = {"interval_us": "us", "service_us": "us", "bottleneck_us": "us",
          "samples_per_second": "samples/s", "network_bytes_per_sample": "B",
          "gpu_memory_bytes": "B"}
"""Metrics of the CSV file, with their units."""


def write_page(result: dict, folder: str, command: str = "") -> None:
    """Write the `FILES` to an existing folder.

    result: from :func:`sim.compare.compare.compare`. command: command that makes the page again.
    """
    place = Path(folder)
    charts = [_times(result), _resources(result)]
    for chart in charts:
        write_png(chart, place / f"{chart.name}.png")
    write_whole(place / "systems.csv", csv_text(_rows(result)))
    write_json(result, str(place / "compare.json"))
    write_whole(place / "index.html", render(_page(result, charts, command)))


def _page(result: dict, charts: list[Chart], command: str) -> Page:
    """Return the page: the reason and the times first, the setting last."""
    times, resources = charts
    built = _built(result)
    base = next((row["interval_us"] for row in built if row["system"] == "bl-tuned"), None)
    rows = [[row["system"], row["interval_us"], base and base / row["interval_us"],
             row["service_us"], row["bottleneck"], row["bottleneck_us"],
             row["samples_per_second"], row["network_bytes_per_sample"],
             row["gpu_memory_bytes"] / 1e9] for row in built]
    systems = _explained(ABOUT, [row["system"] for row in result["systems"]])
    bottlenecks = _explained(RESOURCES, [row["bottleneck"] or "" for row in built])
    return Page(
        f"sim compare: {result['model']} on {result['cluster']}", result["reason"],
        Figure(times, "Bars: us, microseconds from one mini-batch to the next; shorter is faster. "
                      "Black lines: busy time of the busiest resource, a lower bound of the bar. "
                      f"{systems}", command),
        [Section("Systems", [
            Table(_COLUMNS, rows, f"Bottlenecks: {bottlenecks}"),
            Figure(resources, "Network: bytes per sample that all nodes send to other nodes. GPU "
                              "memory: rows, copies of rows and MLPs of the fullest node. "
                              "1 GB is 1e9 bytes.")]),
         Section("Chosen options", [
             Text(choices(result["systems"]), bullets=True),
             Table(["option", "meaning"], used(OPTIONS, choices(result["systems"])))]),
         *([Section("Notes", [Text(result["notes"], bullets=True)])] if result["notes"] else [])],
        _setting(result))


def _built(result: dict) -> list[dict]:
    return [row for row in result["systems"] if row["why"] is None]


def _times(result: dict) -> Chart:
    """Return the chart of the times."""
    built = _built(result)
    names = [row["system"] for row in built]
    return Chart(
        name="systems", title="", setting=heading(result), height=0.9 + 0.5 * len(names),
        panels=[Panel(horizontal=True, x=Axis("us per mini-batch"), series=[
            Series(name="us per mini-batch", kind="bar", x=[row["interval_us"] for row in built],
                   y=names, colour=[colour_of(name) for name in names], legend=False,
                   labels=[f"{row['interval_us']:,.1f}" for row in built],
                   notes=[f"alone: {row['service_us']:,.1f} us" for row in built]),
            Series(name="busy time of the bottleneck", kind="point", marker="tick", y=names,
                   x=[row["bottleneck_us"] for row in built], colour="#000000", legend=False,
                   notes=[f"bottleneck: {row['bottleneck']}" for row in built])])])


def _resources(result: dict) -> Chart:
    """Return the chart of network bytes and GPU memory."""
    built = _built(result)
    names = [row["system"] for row in built]

    def panel(title: str, unit: str, values: list[float], form: str) -> Panel:
        return Panel(title=title, horizontal=True, x=Axis(unit), series=[
            Series(name=title, kind="bar", x=values, y=names, legend=False,
                   colour=[colour_of(name) for name in names],
                   labels=[format(value, form) for value in values])])

    return Chart(
        name="resources", title="", setting="", columns=2, height=0.9 + 0.4 * len(names),
        panels=[panel("network", "bytes per sample",
                      [row["network_bytes_per_sample"] for row in built], ",.0f"),
                panel("GPU memory", "GB of the fullest node",
                      [row["gpu_memory_bytes"] / 1e9 for row in built], ",.2f")])


def _explained(words: dict[str, str], texts: list[str]) -> str:
    return " ".join(f"{word}: {about}." for word, about in used(words, texts))


def _setting(result: dict) -> list[tuple[str, str]]:
    """Return the setting as names and values."""
    return [
        ("model", result["model"]),
        ("cluster", f"{result['nodes']} nodes of {result['cluster']}, {result['gpu']}, software "
                    f"profile {result['software']}"),
        ("mini-batch", f"{result['mini_batch']:,} samples over all nodes"),
        ("workload", result["workload"]), ("samples", result["source"]),
        ("keys and bags", f"{result['keys']:,.1f} keys in {result['bags']:,.1f} non-empty bags per "
                          "sample"),
        ("foreign", f"{result['foreign_bags']:,.0f} bags of tables of other nodes per mini-batch; "
                    f"{result['foreign_rows']:,.0f} distinct rows"),
        ("NIC fidelity", result["fidelity"]),
        ("profiles", ", ".join(f"{name} {digest[:8]}"
                               for name, digest in result["profiles"].items())),
        ("made with", f"EmberNIC {result['version']}, schema {result['schema']}")]


def _rows(result: dict) -> list[Row]:
    return [Row(workload=result["model"], cluster=result["cluster"],
                mini_batch=result["mini_batch"], profile=result["software"],
                fidelity=result["fidelity"], system=row["system"], metric=metric,
                value=row[metric], unit=unit)
            for row in result["systems"] for metric, unit in _UNITS.items()]
