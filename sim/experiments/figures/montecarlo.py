"""Monte Carlo: speedups of the full system when all uncertain constants are drawn together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sim.evaluation.fields import WORKLOADS
from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point, Task
from sim.evaluation.setting import BASES, Setting
from sim.evaluation.store import Results
from sim.experiments.figures.captions import titled
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.row import Row
from sim.experiments.figures.section import Section
from sim.experiments.sensitivity.cases import Case, cases_of, names_of, sets_by_workload
from sim.experiments.sensitivity.constants import frozen_on
from sim.page.chart import COLOURS, Axis, Chart, Panel, Series

__all__ = ["EXHIBIT", "MOST_ERROR"]

MOST_ERROR = 0.03
"""Largest acceptable error of the interpolation."""

_PERCENTILES = (5, 50, 95)

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

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return a column of panels for each data set and a row of them for each workload."""
        cases = list(cases_of(setting))
        return Chart(
            name=self.name, title=self.heading, columns=len(setting.datasets), height=3.4,
            setting=f"{setting.draws:,} joint draws, {setting.nodes} nodes, NIC fidelity "
                    f"{setting.fidelity}, {setting.gpu}",
            panels=[_panel(titled(dataset, workload), results, [
                case for case in cases
                if (case.workload.name, case.workload.workload) == (dataset, workload)])
                for workload in WORKLOADS for dataset in setting.datasets])

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


def _panel(title: str, results: Results, cases: Sequence[Case]) -> Panel:
    """Return a bar for each full system, software profile and baseline."""
    names, low, median, high, nominal, colours = [], [], [], [], [], []
    for case in cases:
        for base in case.bases:
            found = _speedups(results, case, base)
            ends = [None] * 3 if found is None else np.percentile(found, _PERCENTILES).tolist()
            for values, value in zip((low, median, high), ends):
                values.append(value)
            names.append(f"{case.full.label}, {case.full.cluster.software}, "
                         f"{base.kind.name.removeprefix('bl-')}")
            nominal.append(_as_is(results, case, base))
            colours.append(COLOURS[BASES.index(base.kind.name)])
    return Panel(title=title, horizontal=True, level=1, x=Axis("speedup", log=True), series=[
        Series(name="5 % to 95 %", kind="bar", y=names, colour=colours, legend=False,
               base=[end or 1 for end in low],
               x=[None if end is None else end - start for start, end in zip(low, high)],
               notes=["" if end is None else f"{start:.2f} to {end:.2f}"
                      for start, end in zip(low, high)]),
        Series(name="median", kind="point", marker="tick", x=median, y=names, colour="#000000"),
        Series(name="nominal", kind="point", marker="ring", x=nominal, y=names,
               colour="#000000")])


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
    about="All uncertain constants vary together, log-uniform from half to double. Bars: 5 % to "
          "95 % of the draws; lines: median; diamonds: nominal. Draws share NIC runs; the CSV has "
          "the errors of the interpolation between them.")
