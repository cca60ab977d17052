"""The report of a PyTorch program as a folder: a page, and the counts of each mini-batch."""

import csv
import io
from pathlib import Path
from shlex import join

from markupsafe import Markup

from gen.base.files import write_whole
from host.systems import PHASES
from sim.page.chart import COLOURS, Axis, Chart, Panel, Series
from sim.page.content import Column, Figure, Page, Section, Table, Text
from sim.page.html import render

__all__ = ["write_report"]

_PHASES = {
    "input_all_to_all": "keys to the owners of their rows",
    "embedding_lookup": "rows read", "embedding_all_to_all": "vectors back",
    "irregular": "interaction, keys by table, vectors to bags", "mlp": "MLPs, forward and back",
    "backward_all_to_all": "gradients to the owners", "all_reduce": "gradients of the MLPs",
    "overhead": "calls and waits of the host", "wait": "for busy resources"}
_ABOUT = {
    "EN": "NICs without the host in the loop: one graph and one wait per mini-batch.",
    "FS": "The paper's full system: NICs with caches; each key of a mini-batch is looked up once.",
    "bl-tuned": "GPUs and NCCL with tuned software, without these NICs.",
    "bl-paper": "The paper's GPU baseline, without these NICs."}


_LEAST = 0.5
"""Phases below this number of microseconds are omitted."""


def write_report(result: dict, folder: str) -> None:
    """Write ``index.html`` and ``steps.csv`` to an existing folder.

    result: from :func:`sim.torch.report.result.result_of`.
    """
    text = io.StringIO()
    if result["steps"]:
        rows = csv.DictWriter(text, result["steps"][0])
        rows.writeheader()
        rows.writerows(result["steps"])
    write_whole(Path(folder) / "steps.csv", text.getvalue())
    write_whole(Path(folder) / "index.html", render(_page(result)))


def _page(result: dict) -> Page:
    options, script = result["options"], result["script"] or "the program"
    timed = {kind: times for kind, times in result["systems"].items() if times["rows"]}
    said = [f"{kind.capitalize()}: {verdict(times['rows'], options['system'])['text']}"
            for kind, times in timed.items()]
    if result["ended"]:
        said.insert(0, f"{result['ended']}: the report covers the program up to this end.")
    return Page(
        f"{Path(script).name} on NICs", " ".join(said) or "The report has counts, but no times.",
        _phases(timed) if timed else None,
        [_lookups(result), *(_times(kind, times, options["system"])
                             for kind, times in result["systems"].items()),
         *_tables(result),
         *([Section("Notes", [Text(result["notes"], bullets=True)])] if result["notes"] else [])],
        [("program", join([script, *result["arguments"]])),
         ("vectors", "from the RTL of the NICs" if result["values"]["source"] == "rtl" else
          "from the bit-exact numerics"),
         *((name, str(options[name])) for name in ("system", "nodes", "gpu", "software",
                                                   "placement")),
         *_ABOUT.items()])


def _phases(timed: dict[str, dict]) -> Figure:
    """Return the phases of a mini-batch alone: a panel for each kind, a bar for each system."""
    panels = []
    for kind, times in timed.items():
        names = [row["system"] for row in times["rows"]]
        panels.append(Panel(
            title=kind, horizontal=True, stacked=True, x=Axis("us of a mini-batch alone"), series=[
                Series(name=phase.replace("_", " "), kind="bar", colour=colour, y=names,
                       x=[row["phases_us"][phase] for row in times["rows"]])
                for phase, colour in zip(PHASES, (*COLOURS, "#F0E442"), strict=True)
                if _shown(times["rows"], phase)]))
    about = " ".join(f"{phase.replace('_', ' ')}: {each}." for phase, each in _PHASES.items())
    return Figure(Chart(name="phases", title="", panels=panels, columns=2),
                  "Phases on the critical path of a mini-batch alone; hidden phases are omitted. "
                  + about)


def _shown(rows: list[dict], phase: str) -> bool:
    return max(row["phases_us"][phase] for row in rows) >= _LEAST


def _lookups(result: dict) -> Section:
    """Return means per mini-batch, and how many vectors equal PyTorch's."""
    rows, said = [], []
    for kind, sums in result["mini_batches"].items():
        count, cache = sums["count"], sums["local_cache"]
        some = cache["mini_batches"]
        rows.append([
            kind, count, *(sums[name] / count for name in ("samples", "lookups", "unique")),
            sums["lookups"] / sums["unique"] if sums["unique"] else None, sums["bytes"] / count,
            *(cache[name] / some if some else None for name in ("hits", "accesses"))])
        said.append(f"{kind.capitalize()}: " + (
            f"{cache['hits']:,} of {cache['accesses']:,} keys hit the local caches in {some:,} "
            "mini-batches" + ("; the other mini-batches have no counts, and their cells in the "
                              "file are empty" if some < count else "")
            if some else "no NIC counted hits") + ".")
    for name, about in (("one_key", "bags of one key"), ("others", "other bags")):
        against = result["values"]["against_pytorch"][name]
        if against["bags"]:
            said.append(f"{against['equal']:,} of {against['bags']:,} {about} equal PyTorch's bit "
                        "for bit" + (f"; the others differ by at most {against['most_ulp']:,} ulp"
                                     if against["most_ulp"] else "") + ".")
    table = Table(["mini-batches", Column("count", ",d"), Column("samples", ",.1f"),
                   Column("lookups", ",.1f"), Column("unique keys", ",.1f"),
                   Column("lookups per key", ",.2f"), Column("bytes of vectors", ",.0f"),
                   Column("local cache hits", ",.1f"), Column("local cache accesses", ",.1f")],
                  rows, "Means per mini-batch.")
    return Section("Lookups", [
        table, Markup('<p><a href="steps.csv">steps.csv</a> contains each mini-batch.</p>'),
        Text(said)])


def _times(kind: str, times: dict, system: str) -> Section:
    """Return the times of each system in a kind of mini-batches, or why there are none."""
    title = f"{kind.capitalize()}: time of a mini-batch"
    if times["why"]:
        return Section(title, [Text([f"{times['why']}."])])
    rows, best = times["rows"], verdict(times["rows"], system)
    phases = [phase for phase in PHASES if _shown(rows, phase)]
    return Section(title, [
        Table(["system", Column("interval, us", ",.0f"), Column("samples per second", ",.0f"),
               Column(f"speedup over {best['best']}", ",.2f"), Column("in flight", "d"),
               Column("alone, us", ",.0f"), Column("local cache hit rate", ".1%"),
               Column("lookups saved on the network", ",.1f")],
              [[row["system"], row["interval_us"], row["samples_per_second"],
                best["best_us"] / row["interval_us"], row["in_flight"], row["service_us"],
                row["hit_rate"], row["saved"]] for row in rows],
              f"{times['samples']} samples on {times['model']}; mean of {times['mini_batches']} "
              f"mini-batches after {times['warmup']} mini-batches that warm the caches."),
        Table(["phase, us", *(Column(row["system"], ",.0f") for row in rows)], [
            [phase.replace("_", " "), *(row["phases_us"][phase] for row in rows)]
            for phase in phases])])


def _tables(result: dict) -> list[Section]:
    """Return the embedding tables, the processes and the lookups that were not caught."""
    found = [Section("Tables", [Table(
        ["table", Column("rows", ",d"), Column("dimension", "d"), Column("padding", "d"),
         Column("bytes", ",d"), "first lookup"],
        [[f"{number}", table["rows"], table["dimension"], table["padding"],
          4 * table["rows"] * table["dimension"], table["place"]]
         for number, table in enumerate(result["tables"])])])]
    if len(result["processes"]) > 1:
        found.append(Section("Processes", [Table(
            ["process", Column("tables", "d"), Column("lookups", ",d")],
            [[f"{each['rank']}", each["tables"], each["lookups"]]
             for each in result["processes"]], "Each process is a node.")]))
    if result["not_caught"]:
        found.append(Section("Lookups that were not caught", [Table(
            ["place", "reason", Column("count", ",d")],
            [[each["place"], each["what"], each["count"]] for each in result["not_caught"]])]))
    return found


def verdict(rows: list[dict], system: str) -> dict:
    """Compare a system with the fastest system without NICs.

    Members
    -------
    best, best_us: name and interval of the fastest system without NICs.
    loses: True if ``system`` is slower.
    text: the comparison in words.
    """
    own = next(row for row in rows if row["system"] == system)["interval_us"]
    best_us, best = min((row["interval_us"], row["system"]) for row in rows
                        if row["system"].startswith("bl-"))
    said = f"{system} takes {own:,.0f} us per mini-batch"
    if system != best:
        said += f", {best} {best_us:,.0f} us: {best_us / own:,.2f} times as fast"
    return {"best": best, "best_us": best_us, "loses": own > best_us, "text": f"{said}."}
