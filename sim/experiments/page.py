"""The page of ``reproduce``: the verdicts first, the setting last."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.placement.deal import described
from sim.evaluation.fields import DEPTHS, WORKLOADS, devices_of
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.claims.headlines import in_words
from sim.experiments.figures.captions import mini_batches
from sim.page import content
from sim.page.chart import Axis, Chart, Panel, Series, colour_of
from sim.page.content import Column, Figure, Page, Table, Text
from sim.page.html import filled

__all__ = ["Shown", "page_of"]

_ABOUT = ("FS: the full system of the paper, GPUs with SmartNICs. EN: EmberNIC, GPUs with "
          "SmartNICs that work without the host CPU. bl-paper: the paper's GPU baseline. bl-tuned: "
          "GPUs alone, tuned by an engineer. eager and tuned: software profiles.")

_SYSTEMS = ("BL, BL-tuned: bl-paper and bl-tuned, GPUs alone. CPU-MPI: CPUs alone. NIC: SmartNICs "
            "that look up and exchange rows, without caches. LC, RC, SC: such SmartNICs with a "
            "local cache, a remote cache, or the computation of the interaction. GA: mini-batches "
            "formed by the graph algorithm. FS: all of these. RTL: the NICs in RTL.")

_WHY = """\
{{ row.why }}
{% if row.verdicts[1:] %}
<details><summary>other profile and baseline</summary>
{% for verdict in row.verdicts[1:] %}
<div><small>{{ verdict.software }}, over {{ verdict.base }}:
{{ "not measured" if verdict.agrees is none else "yes" if verdict.agrees else "no" }};
{{ verdict.ours }}</small></div>
{% endfor %}
</details>
{% endif %}
"""


@dataclass(frozen=True)
class Shown:
    """A written figure or table, as shown on the page.

    Members
    -------
    name, title, about: of the exhibit. command: command that makes it again.
    charts: charts, empty for a table. answer: its result in a sentence, or empty.
    sections: sections of the page, below the figures.
    """

    name: str
    title: str
    about: str
    command: str
    answer: str
    charts: list[Chart]
    sections: list[content.Section]


def page_of(found: dict, setting: Setting, results: Results, shown: Sequence[Shown]) -> Page:
    """Return the page.

    ``found``: content of ``claims.json``, see :func:`sim.experiments.reproduce.reproduce`.
    """
    notes = sorted({note for outcome in results.values() if outcome.metrics
                    for note in outcome.metrics.get("notes") or ()})
    figures = [part for each in shown for part in _figures(each)]
    picture = _picture(found["headlines"])
    if picture is None and shown and shown[0].answer:
        picture = figures.pop(0)
    headlines = Table(
        ["system", "workload", "software", "over", Column("mean", "s"), "by data set"],
        [[row["system"].upper(), row["workload"], row["software"], row["base"], *in_words(row)]
         for row in found["headlines"]],
        "Mean of the data sets. " + _ABOUT)
    sections = [
        content.Section("Claims of the paper", [
            Text([f"{_tally(found['claims'])} Each claim is judged with eager software against "
                  "bl-paper, as in the paper; unfold the other three verdicts."]),
            _claims(found["claims"])]) if found["claims"] else None,
        content.Section("Figures", [Text([_SYSTEMS]), *figures]) if figures else None,
        content.Section("Headlines", [headlines]) if found["headlines"] else None,
        *(section for each in shown for section in each.sections),
        content.Section("Failed points", [
            Table(["point", "reason"], [[row["point"], row["error"]] for row in found["failed"]])
        ]) if found["failed"] else None,
        content.Section("Notes on the points", [Text(notes, bullets=True)]) if notes else None]
    title = "the paper" if found["claims"] or len(shown) != 1 else shown[0].title
    return Page(f"EmberNIC: {title}", _answer(found, shown), picture,
                [section for section in sections if section and section.parts],
                [*_setting_lines(found, setting), (
                    "chosen by us", "The paper names no mini-batch, window, cache size, node count "
                    "(figures 16 to 27) or depth of pipelining. This setting is our choice, and "
                    "the same for all systems. Every ratio compares systems with the same software "
                    "profile.")])


def _answer(found: dict, shown: Sequence[Shown]) -> str:
    """Return the answer: the tally of the claims, and the headline of the paper; else the answers
    or titles of the figures."""
    first = next((row for row in found["headlines"] if row["mean"] is not None), None)
    said = _tally(found["claims"]) if found["claims"] else ""
    if first is not None:
        faster = "serves a mini-batch" if first["workload"] == "inference" else "trains"
        said += (f" {first['system'].upper()} {faster} {first['mean']:.2f} times as fast as "
                 f"{first['base']}, both with {first['software']} software.")
    return said.strip() or " ".join(each.answer or f"{each.title}." for each in shown)


def _tally(claims: Sequence[dict]) -> str:
    agree, differ = (sum(row["agrees"] is value for row in claims) for value in (True, False))
    left = len(claims) - agree - differ
    return (f"Of {len(claims)} claims of the paper, {agree} agree and {differ} do not"
            + (f"; not measured: {left}." if left else "."))


def _claims(claims: Sequence[dict]) -> Table:
    return Table(["claim", "the paper", "ours", "agrees", "reason"], [
        [row["claim"], f"{row['text']} ({', '.join(row['figures'])})", row["ours"],
         "not measured" if row["agrees"] is None else row["agrees"], filled(_WHY, {"row": row})]
        for row in claims])


def _picture(headlines: Sequence[dict]) -> Figure | None:
    """Return the picture of the headlines, None if there are none."""
    there = [row for row in headlines if row["mean"] is not None]
    panels = []
    for workload in WORKLOADS:
        rows = [row for row in there if row["workload"] == workload]
        series = []
        for system in dict.fromkeys(row["system"] for row in rows):
            own = [row for row in rows if row["system"] == system]
            series.append(Series(
                name=system.upper(), kind="bar", colour=colour_of(system),
                x=[row["mean"] for row in own], y=[
                    f"{row['software']}, {row['base']}" for row in own],
                labels=[f"{row['mean']:.2f}" for row in own],
                notes=[in_words(row)[1] for row in own]))
        if series:
            panels.append(Panel(title=workload, horizontal=True, series=series, level=1,
                                x=Axis("times as fast, mean of the data sets")))
    return Figure(Chart(name="headlines", title="", panels=panels, columns=2, height=3.2),
                  "A bar beyond 1: the system is faster than the baseline. " + _ABOUT
                  ) if panels else None


def _figures(shown: Shown) -> list[Figure]:
    about = f"{shown.about} Values: {shown.name}.csv.".strip()
    return [Figure(chart, about, shown.command) for chart in shown.charts]


def _seeds(found: dict, setting: Setting) -> str:
    """Return a description of the seeds."""
    if len(setting.seeds) == 1:
        return f"{setting.seed}, for all points"
    seeded = ", ".join(found["seeded"]) or "no figure"
    said = (f"{', '.join(map(str, setting.seeds))} for the headlines and {seeded}, shown as "
            f"means; {setting.seed} for the other figures")
    files = [name for name in setting.datasets if setting.source(name).data]
    return said + (f"; the samples of {', '.join(files)} come from files and are the same with "
                   "every seed" if files else "")


def _setting_lines(found: dict, setting: Setting) -> list[tuple[str, str]]:
    return [
        ("data", "; ".join(f"{name}: {source}" for name, source in found["sources"].items())),
        ("cluster", f"{setting.nodes} nodes unless a figure sweeps them, {setting.gpu}, "
                    f"{_gbit_s(setting):g} Gb/s through one switch, MTU 1,500"),
        ("placement", f"{setting.placement}: {described(setting.placement)}; hashed if there are "
                      "more nodes than tables"),
        ("mini-batch", f"{mini_batches(setting)} samples over all nodes, in contiguous shares"),
        ("graph algorithm", "window of 16 mini-batches, over the global stream; its time on the "
                            "CPU is part of the time alone and bounds the interval"),
        ("caches", "each of 10 % of the unique keys that reach it; LRU, float32; requester-side "
                   f"merge {_merge(setting)}, dedupe on"),
        *([("also", setting.in_words())] if setting.every else []),
        ("measured", f"{setting.measured} mini-batches after {setting.warmup} of warm-up"),
        ("sweeps", "; ".join(
            f"{name}: {setting.sweep(name)['measured']} mini-batches after equally many of "
            f"warm-up if cache sizes or nodes are swept, every other size, "
            f"{_nodes_swept(setting, name)} nodes"
            for name, _ in setting.swept if name in setting.datasets)
            or "the same"),
        ("seeds", _seeds(found, setting)),
        ("in flight", f"inference: the fastest of {', '.join(map(str, DEPTHS))} mini-batches for "
         "each system; training: 1"),
        ("NIC fidelity", setting.fidelity + (
            ", and rtl at the diamonds" if setting.markers else "")),
        ("judged on", "inference: time per mini-batch in steady state; training: samples per "
                      "second, the MLPs' all-reduce included"),
        ("points", f"{found['points']}, of which {len(found['failed'])} failed"),
        ("made with", f"EmberNIC {found['version']}, NumPy {found['numpy']}, {found['blas']}; "
                      + ", ".join(f"{name} {digest[:8]}"
                                  for name, digest in found["profiles"].items()))]


def _gbit_s(setting: Setting) -> float:
    """Return the rate of a link, Gb/s."""
    point = setting.point(setting.datasets[0], "bl-paper", software=setting.softwares[0])
    return devices_of(point.cluster).network.bandwidth_gbit_s


def _merge(setting: Setting) -> str:
    return "on" if "requester_merge=true" in dict(setting.every).get("settings", ()) else "off"


def _nodes_swept(setting: Setting, dataset: str) -> str:
    *others, last = setting.numbers_of_nodes(dataset)
    return f"{', '.join(map(str, others))} and {last}" if others else str(last)
