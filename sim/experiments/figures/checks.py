"""Checks: our models against published measurements."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.checks.check import Check, Comparison
from sim.experiments.checks.every import comparisons
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, save
from sim.experiments.figures.section import Section
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

_TABLE = """\
<h2>{{ title }}</h2>
<p>{{ tally }} No constant of a profile is derived from a source for checks
(<code>host/measurements/sources.toml</code>).</p>
<table>
<tr><th>quantity</th><th>ours</th><th>theirs</th><th>error</th><th>bound</th><th>good</th></tr>
{% for each in comparisons %}
<tr><th colspan="6">{{ each.title }}</th></tr>
<tr><td colspan="6"><small>{{ each.where }}. Compared: {{ each.compared }}</small></td></tr>
{% for row in each.rows %}
<tr><td>{{ row.name }}</td><td class="n">{{ row.ours }}</td><td class="n">{{ row.theirs }}</td>
<td class="n">{{ row.error }}</td><td class="n">{{ row.bound }}</td>
<td>{% if row.good is none %}<span class="none">reported</span>
{% elif row.good %}<span class="yes">yes</span>
{% else %}<span class="no">no</span>{% endif %}</td></tr>
{% endfor %}
<tr><td colspan="6">{{ each.conclusion }}</td></tr>
{% endfor %}
</table>
"""

_LEAST, _MOST = 0.125, 8.0
"""Ratios at the edges of the picture. A value outside is drawn at the edge, with its number."""


@dataclass(frozen=True)
class _Checks(Figure):
    """A table of ours, theirs and error. It needs no points and does not depend on the setting."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return ours, theirs, error and bound of each value."""
        return [row for each in comparisons() for check in each.checks
                for row in _rows(each, check)]

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the table, with a conclusion for each comparison."""
        found = comparisons()
        judged = [each for each in found if each.good is not None]
        good = sum(each.good is True for each in judged)
        return [Section(_TABLE, {
            "title": self.title,
            "tally": f"{good} of {len(judged)} comparisons are within their bounds.",
            "comparisons": [{
                "title": each.title, "where": each.source.where, "compared": each.compared,
                "conclusion": each.conclusion, "rows": [_words(check) for check in each.checks]}
                for each in found]})]

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw ours over theirs; a bar is the bound, if there is one."""
        found = comparisons()
        lines = sum(len(each.checks) + 1 for each in found)
        canvas = Canvas(figsize=(11, 1.2 + 0.2 * lines), layout="constrained")
        axes = canvas.subplots()
        _fill(axes, found)
        canvas.suptitle(f"{self.name}: {self.title[0].lower()}{self.title[1:]}", fontsize=12,
                        fontweight="bold")
        save(canvas, path)


def _rows(each: Comparison, check: Check) -> list[Row]:
    found = [("ours", check.ours, check.unit), ("published", check.theirs, check.unit),
             ("error", check.error, "1")]
    if check.bound is not None:
        found += [("bound", check.bound, "1"), ("good", float(check.good is True), "1")]
    return [Row(workload=each.name, cluster=f"{check.gpus} GPUs", mini_batch=check.mini_batch,
                profile=check.profile, fidelity="model", system=system, metric=check.name,
                value=value, unit=unit) for system, value, unit in found]


def _words(check: Check) -> dict:
    return {"name": check.name, "ours": f"{check.ours:,.4g} {check.unit}",
            "theirs": f"{check.theirs:,.4g} {check.unit}", "error": f"{check.error:+.1%}",
            "bound": "" if check.bound is None else f"{check.bound:.0%}", "good": check.good}


def _fill(axes: Axes, found: Sequence[Comparison]) -> None:
    """Draw a line for each value, one comparison below the other."""
    at, ticks, labels = 0, [], []
    for each in found:
        axes.text(_LEAST, at, f" {each.title}", va="center", fontsize=9, fontweight="bold")
        at += 1
        for check in each.checks:
            ratio = check.ours / check.theirs
            good = check.good
            if check.bound is not None:
                axes.barh(at, 2 * check.bound, 0.8, left=1 - check.bound, color="0.88")
            axes.plot(min(_MOST, max(_LEAST, ratio)), at, marker="D" if check.bound else "o",
                      markersize=6 if check.bound else 4,
                      color=COLOURS[7] if good is None else COLOURS[0] if good else COLOURS[3])
            axes.annotate(f"{check.error:+.0%}", (_MOST, at), (4, 0), va="center", fontsize=8,
                          textcoords="offset points", annotation_clip=False)
            ticks.append(at)
            labels.append(check.name)
            at += 1
    axes.axvline(1, color="0.2", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(_LEAST, _MOST)
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], ["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_yticks(ticks, labels, fontsize=8)
    axes.set_ylim(at, -1)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("ours over theirs; diamonds have a bound (grey): blue within, red outside; "
                    "circles have no bound", fontsize=9)


EXHIBIT = _Checks(
    "checks", "Our models against published measurements",
    about="Published measurements of kernels, collectives, inference, scaling and a slow network, "
          "against the models of the evaluation.")
