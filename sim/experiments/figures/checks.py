"""Checks: our models against published measurements."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.checks.check import Check, Comparison
from sim.experiments.checks.every import comparisons
from sim.experiments.figures.exhibit import Figure
from sim.page.chart import COLOURS, Axis, Chart, Panel, Series
from sim.page.content import Column, Section, Table, Text
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

_LEAST, _MOST = 0.125, 8.0
"""Ratios at the edges of the chart. A value outside is drawn at the edge."""

_COLUMNS = ("quantity", Column("ours", ",.4g"), Column("theirs", ",.4g"), "unit",
            Column("error", "+.1%"), Column("bound", ".0%"), "within")

_MARKS = ((False, "outside its bound", COLOURS[3]), (True, "within its bound", COLOURS[0]),
          (None, "without a bound", COLOURS[7]))


@dataclass(frozen=True)
class _Checks(Figure):
    """A table of ours, theirs and error. It needs no points and does not depend on the setting."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return ours, theirs, error and bound of each value."""
        return [row for each in comparisons() for check in each.checks
                for row in _rows(each, check)]

    def answer(self, setting: Setting, results: Results, rows: Sequence[Row]) -> str:
        """Return the number of comparisons within their bounds, and the worst."""
        found = comparisons()
        judged = [each for each in found if each.good is not None]
        worst = max(judged, key=lambda each: each.worst)
        return (f"Our models are within their bounds in {sum(each.good is True for each in judged)}"
                f" of {len(judged)} comparisons with published measurements; the largest miss is a "
                f"factor of {worst.worst:.2f} ({worst.title}).")

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a table for each comparison, with its conclusion."""
        return [Section(self.title, [Text([
            "No constant of a profile is derived from a source for checks "
            "(host/measurements/sources.toml)."])]), *(
                Section(each.title, [
                    Text([f"{each.source.where}. Compared: {each.compared}"]),
                    Table(_COLUMNS, [[check.name, check.ours, check.theirs, check.unit, check.error,
                                      check.bound, check.good] for check in each.checks]),
                    Text([each.conclusion])]) for each in comparisons())]

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return ours over theirs, a line for each comparison and a point for each value."""
        found = comparisons()
        return Chart(name=self.name, title=self.heading, height=0.8 + 0.36 * len(found), panels=[
            Panel(horizontal=True, level=1, series=[
                _points(found, *mark) for mark in _MARKS], x=Axis(
                    "ours over theirs", log=True, bounds=(0.9 * _LEAST, _MOST / 0.9),
                    ticks=(0.125, 0.25, 0.5, 1, 2, 4, 8),
                    names=("1/8", "1/4", "1/2", "1", "2", "4", "8")))])


def _rows(each: Comparison, check: Check) -> list[Row]:
    found = [("ours", check.ours, check.unit), ("published", check.theirs, check.unit),
             ("error", check.error, "1")]
    if check.bound is not None:
        found += [("bound", check.bound, "1"), ("good", float(check.good is True), "1")]
    return [Row(workload=each.name, cluster=f"{check.gpus} GPUs", mini_batch=check.mini_batch,
                profile=check.profile, fidelity="model", system=system, metric=check.name,
                value=value, unit=unit) for system, value, unit in found]


def _points(found: Sequence[Comparison], good: bool | None, name: str, colour: str) -> Series:
    """Return the values whose verdict is ``good``; comparisons without them have an empty place,
    so that all comparisons keep their order."""
    own = [(each, check) for each in found for check in each.checks if check.good is good]
    return Series(
        name=name, kind="point", colour=colour, marker="circle" if good is None else "diamond",
        y=[each.name for each in found] + [each.name for each, _ in own],
        x=[None] * len(found) + [
            min(_MOST, max(_LEAST, check.ours / check.theirs)) for _, check in own],
        notes=[""] * len(found) + [
            f"{check.name}: ours {check.ours:,.4g} {check.unit}, theirs {check.theirs:,.4g} "
            f"({check.error:+.0%})" for _, check in own])


EXHIBIT = _Checks(
    "checks", "Our models against published measurements",
    about="Published measurements of kernels, collectives, inference, scaling and a slow network, "
          "against the models of the evaluation. A value beyond the axis is drawn at its edge.")
