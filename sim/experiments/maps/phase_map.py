"""Phase map: which claims agree where, and where the full system beats a tuned baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Exhibit
from sim.experiments.figures.row import cluster_of
from sim.experiments.maps.cells import INFERENCE, TRAINING, Cell, cells_of, points_of
from sim.experiments.maps.heat import claims_chart, heat_chart
from sim.experiments.maps.verdicts import JUDGED, RATIOS, Ratio, agreeing, ratio, verdicts
from sim.page.chart import Chart
from sim.page.content import Section, Table
from sim.page.rows import Row

__all__ = ["EXHIBIT", "best"]

_BEST = 5
"""Settings in the page's table."""

@dataclass(frozen=True)
class _PhaseMap(Exhibit):
    """Links, mini-batches and operator times, for each data set."""

    def points(self, setting: Setting) -> Sequence[Point]:
        """Return the points of all cells."""
        return [point for cell in _cells(setting) for point in points_of(setting, cell)]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return for each cell the number of agreeing claims, the verdicts, and the speedups."""
        rows = []
        for cell in _cells(setting):
            found = verdicts(setting, results, cell)
            agree, judged = agreeing(found)
            first = setting.softwares[0]
            rows += [_row(setting, cell, first, name, value, "claims") for name, value in (
                ("claims_that_agree", agree), ("claims_judged", judged))]
            rows += [_row(setting, cell, first, _agrees(name),
                          None if value is None else float(value), "1")
                     for name, value in found.items()]
            rows += [_row(setting, cell, of.software, _speedup(of),
                          ratio(setting, results, cell, of), "x", of.system)
                     for of in RATIOS]
        return rows

    def charts(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Chart]:
        """Return two charts for each data set: agreeing claims and speedups, and every claim."""
        known, charts = _Known(setting, rows), []
        said = (f"{setting.nodes} nodes, one window after one of warm-up, seed {setting.seed}, NIC "
                f"fidelity {setting.fidelity}, {setting.gpu}")
        for dataset in setting.datasets:
            found = {cell: known.verdicts(cell) for cell in cells_of(dataset)}
            name = f"{self.name}_{dataset}"
            charts += [
                heat_chart(name, said, found, {
                    cell: {of.name: known.ratio(cell, of) for of in RATIOS} for cell in found}),
                claims_chart(f"{name}_claims", said, found)]
        return charts

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the settings where most claims agree, and how often the full system is faster."""
        known, wins = _Known(setting, rows), []
        for dataset in setting.datasets:
            for of in RATIOS:
                values = [known.ratio(cell, of) for cell in cells_of(dataset)]
                there = [value for value in values if value is not None]
                wins.append([dataset, of.name,
                             f"{sum(value > 1 for value in there)} of {len(there)} cells"])
        ranked = best({cell: known.verdicts(cell) for cell in _cells(setting)})
        return [Section(self.title, [
            Table(["where most claims agree, over all data sets", "agree"], [
                [name, f"{agree} of {judged}"] for name, agree, judged in ranked[:_BEST]]),
            Table(["data set", "full system over a baseline", "faster in"], wins,
                  "One seed and one window per point. Compositions in inference: "
                  f"{', '.join(INFERENCE)}; in training: {', '.join(TRAINING)}. Claims judged, "
                  f"with eager software against bl-paper: {', '.join(JUDGED)}.")])]


class _Known:
    """Values of each cell, read from the rows."""

    def __init__(self, setting: Setting, rows: Sequence[Row]):
        self._software = setting.softwares[0]
        self._values = {
            (row.workload, row.mini_batch, row.profile, row.system, row.metric): row.value
            for row in rows}

    def verdicts(self, cell: Cell) -> dict[str, bool | None]:
        """Return whether each claim agrees, None if not measured."""
        found = {name: self._of(cell, self._software, _agrees(name)) for name in JUDGED}
        return {name: None if value is None else bool(value) for name, value in found.items()}

    def ratio(self, cell: Cell, of: Ratio) -> float | None:
        """Return a speedup."""
        return self._of(cell, of.software, _speedup(of), of.system)

    def _of(self, cell: Cell, software: str, metric: str, system: str = "") -> float | None:
        return self._values.get((cell.dataset, cell.mini_batch, software, system.upper(),
                                 _at(cell, metric)))


def best(found: Mapping[Cell, Mapping[str, bool | None]]) -> list[tuple[str, int, int]]:
    """Return each cell's name, the number of agreeing claims over all data sets, and the number of
    judged claims, the largest share first."""
    counts: dict[str, tuple[int, int]] = {}
    for cell, own in found.items():
        counts[cell.name] = tuple(a + b for a, b in zip(  # type: ignore[assignment]
            counts.get(cell.name, (0, 0)), agreeing(own)))
    ranked = [(name, agree, judged) for name, (agree, judged) in counts.items() if judged]
    return sorted(ranked, key=lambda each: (-each[1] / each[2], each[0]))


def _cells(setting: Setting) -> list[Cell]:
    return [cell for dataset in setting.datasets for cell in cells_of(dataset)]


def _row(setting: Setting, cell: Cell, software: str, metric: str, value: float | None,
         unit: str, system: str = "") -> Row:
    return Row(cell.dataset, cluster_of(setting.nodes), cell.mini_batch, software, setting.fidelity,
               system.upper(), _at(cell, metric), value, unit)


def _at(cell: Cell, metric: str) -> str:
    return f"{metric} [{cell.link} Gb/s, operator {cell.operator} us]"


def _agrees(name: str) -> str:
    return f"{name}_agrees"


def _speedup(of: Ratio) -> str:
    return f"{of.workload}_speedup_vs_{of.base}"


EXHIBIT = _PhaseMap(
    "phase_map", "Which claims of the paper agree where, and who wins where",
    about="Links, mini-batches and the host time of an operator vary. Mini-batches of 8,192 are "
          "measured at the slowest and the fastest link with the longer operator, in windows of "
          "8 mini-batches instead of 16, without pairs of techniques.")
