"""A plot: a figure whose values are metrics of measured points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.captions import of_points, titled
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of
from sim.experiments.figures.plots.panel import Panel
from sim.experiments.figures.row import row_of
from sim.page import chart
from sim.page.chart import Chart
from sim.page.rows import Row

__all__ = ["Plot"]

_MARKED_FIRST = ("FS", "LC", "RC")


@dataclass(frozen=True)
class Plot(Figure):
    """A figure made of points.

    Members
    -------
    entries: its points in a setting. metrics: metrics of each point; a panel draws the first, or
        all.
    panel: kind of panel.
    """

    entries: Callable[[Setting], list[Entry]]
    metrics: tuple[Metric, ...]
    panel: Panel

    def marked(self, setting: Setting) -> list[Entry]:
        """Return the entries whose NICs also run in ``rtl``: at most two, at the reference setting,
        preferably the full system or caches alone; and EN's entries, which share their runs with a
        resident kernel."""
        if not setting.markers or setting.fidelity == "rtl" or "kaggle" not in setting.datasets:
            return []
        there = [entry for entry in self.entries(setting) if entry.drawn and _at_reference(
            entry.point, setting)]
        own = [entry for entry in there if entry.point.kind.chooses_nics]
        near = [entry for entry in there if entry not in own
                and entry.point.cluster.software == setting.softwares[0]]
        near.sort(key=lambda entry: _MARKED_FIRST.index(entry.point.label)
                  if entry.point.label in _MARKED_FIRST else len(_MARKED_FIRST))
        return [replace(entry, point=entry.point.changed(fidelity="rtl"), seeds=())
                for entry in (*near[:2], *own)]

    def points(self, setting: Setting) -> list[Point]:
        """Return every point that the figure needs, baselines included."""
        return [point for entry in (*self.entries(setting), *self.marked(setting))
                for point in entry.points]

    def over_seeds(self, setting: Setting) -> bool:
        """Return whether entries are measured with several seeds."""
        return any(len(entry.seeds) > 1 for entry in self.entries(setting))

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return every metric of every entry."""
        return [row_of(entry.point, entry.system, metric.name,
                       estimate_of(results, entry, metric), metric.unit)
                for entry in (*self.entries(setting), *self.marked(setting))
                for metric in self.metrics]

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return a column of panels for each data set, and a row for each software profile.

        If the points have fewer profiles than the setting, there is one row.
        """
        entries = [entry for entry in self.entries(setting) if entry.drawn]
        marked = self.marked(setting)
        softwares = list(dict.fromkeys(entry.point.cluster.software for entry in entries))
        datasets = [dataset for dataset in setting.datasets
                    if any(entry.panel == dataset for entry in entries)]
        named = {f"{software} software": software for software in softwares}
        if len(softwares) < len(setting.softwares):
            named = {"": softwares[0]}

        def panel(dataset: str, name: str) -> chart.Panel:
            own, own_marked = (
                [entry for entry in among if entry.panel == dataset
                 and entry.point.cluster.software == named[name]] for among in (entries, marked))
            return self.panel.described(titled(dataset, name), self.metrics, results, own,
                                        own_marked)

        return Chart(name=self.name, title=self.heading, columns=len(datasets),
                     setting=of_points([entry.point for entry in entries]),
                     panels=[panel(dataset, name) for name in named for dataset in datasets])


def _at_reference(point: Point, setting: Setting) -> bool:
    """Return whether a point has a NIC, on the Kaggle shape, at the reference setting."""
    workload, system = point.workload, point.system
    return (workload.dataset == "kaggle" and point.kind.in_rtl
            and point.cluster.nodes == setting.nodes
            and workload.samples == setting.mini_batch("kaggle")
            and {system.local_cache, system.remote_cache} <= {0.0, 0.1})
