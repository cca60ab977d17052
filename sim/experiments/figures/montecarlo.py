"""Monte Carlo: speedups of the full system when all uncertain constants are drawn together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from sim.evaluation.fields import WORKLOADS
from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point, Task
from sim.evaluation.setting import BASES, Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.experiments.figures.row import Row
from sim.experiments.figures.section import Section
from sim.experiments.sensitivity.cases import Case, cases_of, names_of, sets_by_workload
from sim.experiments.sensitivity.constants import frozen_on

__all__ = ["EXHIBIT", "MOST_ERROR"]

MOST_ERROR = 0.03
"""Largest acceptable error of the interpolation."""

_PERCENTILES = (5, 50, 95)

_MARKS = ((0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 8),
          (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12), (0.125, 0.25, 0.5, 1, 2, 4, 8, 16),
          (0.01, 0.1, 1, 10, 100))
"""Candidate ticks of an axis."""
_MOST_MARKS = 9

_SECTION = """\
<h2>{{ title }}</h2>
<p>{{ draws }} joint draws of every constant that was unverified or second hand on {{ day }} and has
not been measured since ({{ counts }}). Each factor is log-uniform from half to double, and the same
for the baselines and the full system. NICs are simulated at no more than {{ sets }} points for each
data set, a few more for EN, and interpolated in between; the rest is computed for each draw. EN
keeps its nominal options. EN and its baselines keep their nominal mini-batches in flight and per
graph.</p>
<table>
<tr><th>full system</th><th>workload</th><th>data set</th><th>software</th><th>over</th>
<th>nominal</th><th>median</th><th>5 % to 95 %</th><th>draws with a gain</th></tr>
{% for row in rows %}
<tr><td>{{ row.system }}</td><td>{{ row.workload }}</td><td>{{ row.dataset }}</td>
<td>{{ row.software }}</td>
<td>{{ row.base }}</td><td class="n">{{ row.as_is }}</td><td class="n">{{ row.median }}</td>
<td class="n">{{ row.low }} to {{ row.high }}</td><td class="n">{{ row.above }}</td></tr>
{% endfor %}
</table>
<table>
<tr><th>interpolation</th><th>workload</th><th>data set</th><th>NIC runs</th><th>axes</th>
<th>leave-one-out error of a speedup</th><th>bound</th>
<th>errors of the NICs' values, median (most)</th></tr>
{% for row in errors %}
<tr><td>{{ row.system }}</td><td>{{ row.workload }}</td><td>{{ row.dataset }}</td>
<td class="n">{{ row.sets }}</td>
<td>{{ row.axes }}</td><td class="n">median {{ row.median }}, most {{ row.most }}</td>
<td class="n">{{ row.good }}</td><td>{{ row.nics }}</td></tr>
{% endfor %}
</table>
"""


@dataclass(frozen=True)
class _MonteCarlo(Figure):
    """All uncertain constants drawn at once."""

    def points(self, setting: Setting) -> Sequence[Point | Task]:
        """Return the points whose NICs are run, the baselines, and the draws."""
        return [each for case in cases_of(setting)
                for each in (*case.points, case.left_out, *case.draws)]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return percentiles of each speedup, the share of draws above 1, and the errors of the
        interpolation."""
        rows = []
        for case in cases_of(setting):
            for base in case.bases:
                found = _speedups(results, case, base)
                name = f"speedup_vs_{base.kind.name}"
                rows.append(_row(case, f"{name} [as it is]", _as_is(results, case, base), "x"))
                rows += [_row(case, f"{name} [percentile {percentile}]",
                              None if found is None else float(np.percentile(found, percentile)),
                              "x") for percentile in _PERCENTILES]
                rows.append(_row(case, f"{name} [share of draws above 1]",
                                 None if found is None else float(np.mean(found > 1)), "1"))
        for case in _by_workload(setting):
            for name, unit in (("sets", "sets"), ("median", "1"), ("most", "1")):
                rows.append(_row(case, f"left_out_{name}",
                                 results.value(case.left_out, name), unit))
            outcome = results.get(case.left_out)
            for value, errors in (outcome.metrics if outcome and outcome.metrics else {}).get(
                    "nics", {}).items():
                rows += [_row(case, f"left_out_{which} [{value} of the NICs]", error, "1")
                         for which, error in errors.items()]
        return rows

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw a column of panels for each data set and a row of them for each workload."""
        cases = list(cases_of(setting))

        def fill(axes: Axes, dataset: str, workload: str) -> None:
            of = [case for case in cases
                  if (case.workload.name, case.workload.workload) == (dataset, workload)]
            _fill(axes, results, of)

        save(grid(setting.datasets, WORKLOADS, self.heading,
                  f"{setting.draws:,} joint draws, {setting.nodes} nodes, NIC fidelity "
                  f"{setting.fidelity}, {setting.gpu}", fill, height=3.4), path)

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the percentiles and the errors as tables."""
        counts = ", ".join(f"{len(names_of(setting, software))} with {software} software"
                           for software in setting.softwares)
        return [Section(_SECTION, {
            "title": self.title, "draws": f"{setting.draws:,}", "day": frozen_on(),
            "counts": counts, "sets": sum(sets_by_workload(setting).values()),
            "rows": [_shown(results, case, base) for case in cases_of(setting)
                     for base in case.bases],
            "errors": [_errors(results, case) for case in _by_workload(setting)]})]


def _by_workload(setting: Setting) -> Iterator[Case]:
    """Yield one case for each full system, data set and workload, because software profiles share
    runs."""
    for case in cases_of(setting):
        if case.full == case.left_out.full:
            yield case


def _speedups(results: Results, case: Case, base: Point) -> np.ndarray | None:
    """Return the speedup of every draw; None if a chunk failed."""
    found = [results.value(each, f"speedups.{base.kind.name}") for each in case.draws]
    if any(each is None for each in found):
        return None
    return np.concatenate([np.array(each) for each in found])


def _as_is(results: Results, case: Case, base: Point) -> float | None:
    metric = JUDGED[case.workload.workload]
    return speedup(metric, *(results.value(point, metric) for point in (case.full, base)))


def _row(case: Case, metric: str, value: float | None, unit: str) -> Row:
    return Row.at(case.full, case.full.label, f"{case.workload.workload}_{metric}", value, unit)


def _fill(axes: Axes, results: Results, cases: Sequence[Case]) -> None:
    """Draw a violin for each software profile and baseline."""
    names, place = [], 0
    for case in cases:
        for base in case.bases:
            found = _speedups(results, case, base)
            names.append(f"{case.full.label},\n{case.full.cluster.software},\n"
                         f"over\n{base.kind.name.removeprefix('bl-')}")
            if found is not None:
                colour = COLOURS[BASES.index(base.kind.name)]
                drawn = axes.violinplot(np.log2(found), [place], widths=0.85, showextrema=False)
                for body in drawn["bodies"]:  # type: ignore[attr-defined]
                    body.set(facecolor=colour, edgecolor=colour, alpha=0.5)
                low, middle, high = np.log2(np.percentile(found, _PERCENTILES))
                axes.plot([place, place], [low, high], color="0.2", linewidth=1)
                axes.plot([place - 0.2, place + 0.2], [middle, middle], color="0.2", linewidth=2)
            if as_is := _as_is(results, case, base):
                axes.plot(place, np.log2(as_is), marker="D", markersize=5, color="black",
                          fillstyle="none")
            place += 1
    axes.axhline(0, color="0.2", linewidth=1)
    axes.set_xticks(range(place), names, fontsize=7)
    low, high = axes.get_ylim()
    marks = next(there for marks in _MARKS if len(there := [
        mark for mark in marks if low <= np.log2(mark) <= high]) <= _MOST_MARKS)
    axes.set_yticks(np.log2(marks), [f"{mark:g}" for mark in marks])
    axes.set_ylabel("speedup")


def _shown(results: Results, case: Case, base: Point) -> dict[str, str]:
    """Return a row of the page's table."""
    found, as_is = _speedups(results, case, base), _as_is(results, case, base)
    low, middle, high = (["n/a"] * 3 if found is None else
                         [f"{value:.2f}x" for value in np.percentile(found, _PERCENTILES)])
    return {"system": case.full.label, "workload": case.workload.workload,
            "dataset": case.workload.name, "software": case.full.cluster.software,
            "base": base.kind.name, "low": low, "median": middle, "high": high,
            "as_is": "n/a" if as_is is None else f"{as_is:.2f}x",
            "above": "n/a" if found is None else f"{np.mean(found > 1):.0%}"}


def _errors(results: Results, case: Case) -> dict[str, str]:
    """Return a row of the page's table of errors."""
    outcome = results.get(case.left_out)
    metrics = outcome.metrics if outcome and outcome.metrics else None
    row = {"system": case.full.label, "workload": case.workload.workload,
           "dataset": case.workload.name}
    if metrics is None:
        return row | dict.fromkeys(("sets", "axes", "median", "most", "good", "nics"), "n/a")
    good = metrics["most"] <= MOST_ERROR
    return row | {"sets": str(metrics["sets"]), "axes": ", ".join(metrics["axes"]),
                  "median": f"{metrics['median']:.2%}", "most": f"{metrics['most']:.2%}",
                  "good": f"{MOST_ERROR:.0%}: {'held' if good else 'NOT held'}",
                  "nics": ", ".join(f"{name} {error['median']:.1%} ({error['most']:.1%})"
                                    for name, error in metrics["nics"].items())}


EXHIBIT = _MonteCarlo(
    "montecarlo", "The full system's speedup when all uncertain constants are drawn together",
    about="All uncertain constants vary together, log-uniform from half to double. Bars: median, "
          "5 % and 95 %; diamonds: nominal. Draws share NIC runs; the CSV has the errors of the "
          "interpolation between them.")
