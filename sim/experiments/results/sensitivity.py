"""The part of the results page on sensitivity: tornado, Monte Carlo, and single changes."""

from collections.abc import Mapping, Sequence

from sim.experiments.results.answer import EQUAL
from sim.experiments.results.cases import BASE, FULL, OWN
from sim.experiments.results.changes import FAIR, UNFAIR
from sim.experiments.results.rows import place_of
from sim.experiments.sensitivity.spread import DRAWS
from sim.page.chart import Axis, Chart, Panel, Series, colour_of
from sim.page.content import Column, Figure, Section, Table, Text

__all__ = ["method", "monte_carlo", "ranges", "section_of", "strongest", "tornado"]

_CONSTANTS = 5
"""Constants in a panel of the tornado; the CSV file has all."""

_LEAST = 0.001
"""Share of the ratio; a constant with a smaller effect is not drawn."""


def section_of(found: Sequence[Mapping], command: str) -> Section:
    """Return the section: tornado, Monte Carlo with its table, and single changes."""
    rows = [row for row in found if row["spread"][OWN]]
    if not rows:
        return Section("Sensitivity", [Text(["Not measured: no row has EN's ratio."])])
    return Section("Sensitivity", [
        Figure(tornado(rows), (
            f"EN over {BASE} if one constant has its least value (blue) or its largest (orange). "
            f"The {_CONSTANTS} strongest constants of the first row of each workload; "
            "results.csv has all."), command),
        Figure(monte_carlo(rows), (
            f"Bars: 5 % to 95 % of {DRAWS} joint draws of all uncertain constants; black line: "
            f"median; ring: nominal constants. Ratios over {BASE}, which searches its options "
            "again in each draw. FS: the paper's full system."), command),
        _table(rows), _changes(rows), _costs(rows)])


def strongest(spread: Mapping) -> list[tuple[str, tuple[float, float]]]:
    """Return the constants of a system, and the ratio at both ends, the largest effect first."""
    return sorted(((name, tuple(ends)) for name, ends in spread["ends"].items()),
                  key=lambda each: (-_swing(each[1]), each[0]))


def _swing(ends: tuple[float, float]) -> float:
    return max(ends) / min(ends)


def monte_carlo(rows: Sequence[Mapping]) -> Chart:
    """Return the picture of the joint draws: a panel for EN, one for FS, a bar for each row."""
    return Chart(name="montecarlo", title="All uncertain constants drawn together", columns=2,
                 height=max(3.0, 0.3 * len(rows)),
                 panels=[_bars(rows, name) for name in (OWN, FULL)])


def _bars(rows: Sequence[Mapping], name: str) -> Panel:
    shown = [row for row in rows if row["spread"][name]]
    places = [place_of(row) for row in shown]
    low, median, high = ([row["spread"][name][each] for row in shown]
                         for each in ("low", "median", "high"))
    return Panel(
        title=f"{name.upper()} over {BASE}", horizontal=True, level=1, x=Axis("ratio", log=True),
        series=[
            Series(name="5 % to 95 %", kind="bar", y=places, base=low, colour=colour_of(name),
                   x=[end - start for start, end in zip(low, high)], legend=False,
                   notes=[f"{start:.2f} to {end:.2f}" for start, end in zip(low, high)]),
            Series(name="median", kind="point", marker="tick", x=median, y=places,
                   colour="#000000"),
            Series(name="nominal", kind="point", marker="ring", y=places, colour="#000000",
                   x=[row["ratios"][name] for row in shown])])


def tornado(rows: Sequence[Mapping]) -> Chart:
    """Return the picture of single constants: a panel for the first row of each workload."""
    first = list({row["workload"]: row for row in reversed(rows)}.values())[::-1]
    return Chart(name="tornado", title="One uncertain constant at a time", columns=2, height=2.6,
                 panels=[_swings(row) for row in first])


def _swings(row: Mapping) -> Panel:
    nominal = row["ratios"][OWN]
    shown = [each for each in strongest(row["spread"][OWN])[:_CONSTANTS]
             if _swing(each[1]) > 1 + _LEAST]
    names = [name for name, _ in shown]
    return Panel(
        title=place_of(row), horizontal=True, level=nominal, x=Axis(f"EN over {BASE}"),
        note="" if shown else "No constant changes the ratio.",
        series=[Series(name=f"{word} value", kind="bar", y=names, base=[nominal] * len(names),
                       x=[ends[end] - nominal for _, ends in shown], colour=colour,
                       notes=[f"{ends[end]:.2f}" for _, ends in shown])
                for end, (word, colour) in enumerate((
                    ("least", colour_of("bl-tuned")), ("largest", colour_of("ga"))))])


def _table(rows: Sequence[Mapping]) -> Table:
    return Table(
        ["workload", "cluster", Column("mini-batch", ",d", "samples over all nodes"),
         *(Column(f"{name.upper()} {each}", ".2f", about) for name in (FULL, OWN)
           for each, about in (("5 %", ""), ("median", ""), ("95 %", ""))),
         Column("draws with a gain", ".0%", "share of the draws in which EN is faster"),
         "strongest constant", Column("EN x at its least", ".2f"),
         Column("EN x at its largest", ".2f")],
        [[row["workload"], row["cluster"], row["mini_batch"],
          *((row["spread"][name] or {}).get(each) for name in (FULL, OWN)
            for each in ("low", "median", "high")),
          row["spread"][OWN]["above"], *_first(row)] for row in rows])


def _changes(rows: Sequence[Mapping]) -> Table:
    kinds = {each["change"]: each["kind"] for row in rows for each in row["changes"]
             if each["kind"] in (FAIR, UNFAIR)}
    names = [name + " *" * (kind == UNFAIR) for name, kind in kinds.items()]
    return Table(
        ["workload", "cluster", Column("mini-batch", ",d"), Column("EN x", ".2f"),
         *(Column(name, ".2f") for name in names)],
        [[row["workload"], row["cluster"], row["mini_batch"], row["ratios"][OWN],
          *map({each["change"]: each["ratio"] for each in row["changes"]}.get, kinds)]
         for row in rows],
        f"EN x after each single change, which {BASE} and EN both get before they search their "
        "other options again. The column EN x has no change: both may use two host threads, two "
        "communicators, one collective for a graph and stores to remote GPUs, and each GPU has its "
        "own link. * contradicts a measurement, or charges the GPU for the SmartNIC: not a fair "
        "change, and only in the first row of each workload. "
        f"Values between {1 - EQUAL:g} and {1 + EQUAL:g} are not a difference.")


def _costs(rows: Sequence[Mapping]) -> Table:
    """Return the headlines after each cost that the models miss, and with other samples."""
    found = []
    for row in rows:
        other = [each for each in row["changes"] if each["kind"] not in (FAIR, UNFAIR)]
        if other:
            found.append([place_of(row), "none", None, *(
                row["systems"][name]["interval_us"] for name in (BASE, OWN)), row["ratios"][OWN]])
        found += [[place_of(row), each["change"], each["factor"], each["base_us"], each["own_us"],
                   each["ratio"]] for each in other]
    return Table(
        ["headline", "change", Column("factor", ".2f", "largest factor between the measured value "
                                      "and ours over the checks of the cost"),
         Column(f"{BASE} us", ",.1f"), Column("EN us", ",.1f"), Column("EN x", ".2f")], found,
        "Costs that the models miss, in the first row of each workload: each cost is as many times "
        "larger as the checks (sim reproduce checks) show, for both systems. Slower kernels: "
        "kernel times, memory rate and arithmetic. Slower host software: every launch and call. "
        f"Slower network: its rate is divided. {BASE} and EN search their options again, except "
        "EN with slower kernels and with other samples: its NICs run again, with the same "
        "placement and options.")


def _first(row: Mapping) -> tuple:
    name, ends = next(iter(strongest(row["spread"][OWN])), (None, (None, None)))
    return name, *ends


def ranges(kinds: Sequence[Mapping]) -> Table:
    return Table(
        ["kind of constant", Column("range, times and over", ".2f", "the largest factor between "
                                    "our value and the measured value over the checks"),
         Column("checks", "d"), "constants"],
        [[each["kind"], each["width"], each["checks"], ", ".join(each["constants"])]
         for each in kinds],
        "Each factor is log-uniform over its range. Measured constants stay fixed; the page of "
        "checks has the errors of the models that use them.")


def method(rows: Sequence[Mapping]) -> list[str]:
    said = [f"{BASE} and FS search their options again in each draw, except the placement of the "
            "tables. EN searches its options of the host and its mini-batches in flight and per "
            "graph again; its placement and the options of its NICs stay.",
            "Nothing is interpolated: each draw composes the whole system with the NICs' simulated "
            "times."]
    held = [f"{place_of(row)}, {name.upper()}: "
            + ", ".join(each["held"]) for row in rows
            for name, each in row["spread"].items() if each and each["held"]]
    if held:
        said.append("NICs are not simulated again. These constants also change the times of the "
                    "NICs themselves, which the ranges leave out: " + "; ".join(held) + ".")
    else:
        said.append("No uncertain constant changes the times of the NICs that the systems chose.")
    return said
