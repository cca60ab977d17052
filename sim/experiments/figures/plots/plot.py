"""A plot: a figure of which every value is a metric of a measured point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.axes import Axes

from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.captions import of_points
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import grid, save
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric, estimate_of
from sim.experiments.figures.plots.panel import Panel
from sim.experiments.figures.row import Row

__all__ = ["Plot"]

_MARKED_FIRST = ("FS", "LC", "RC")


@dataclass(frozen=True)
class Plot(Figure):
    """A figure made of points.

    Members
    -------
    entries: its points in a setting. metrics: of each of them; a panel draws the first, or all.
    panel: how a panel is drawn.
    """

    entries: Callable[[Setting], list[Entry]]
    metrics: tuple[Metric, ...]
    panel: Panel

    def marked(self, setting: Setting) -> list[Entry]:
        """Return the entries whose NICs are run in ``rtl`` besides: at most two, at the reference
        setting, the full system or caches alone where the figure has them; and EN's, which with a
        resident kernel share their runs."""
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

    def with_intervals(self, setting: Setting) -> bool:
        """Return whether entries are measured with several seeds."""
        return any(len(entry.seeds) > 1 for entry in self.entries(setting))

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return every metric of every entry."""
        return [Row.of(entry.point, entry.system, metric.name,
                       estimate_of(results, entry, metric), metric.unit)
                for entry in (*self.entries(setting), *self.marked(setting))
                for metric in self.metrics]

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw a column of panels for each data set, and a row of them for each software profile.

        Without rows of panels where the points have fewer profiles than the setting.
        """
        entries = [entry for entry in self.entries(setting) if entry.drawn]
        marked = self.marked(setting)
        softwares = list(dict.fromkeys(entry.point.cluster.software for entry in entries))
        datasets = [dataset for dataset in setting.datasets
                    if any(entry.panel == dataset for entry in entries)]
        named = {f"{software} software": software for software in softwares}
        if len(softwares) < len(setting.softwares):
            named = {"": softwares[0]}

        def draw(axes: Axes, dataset: str, name: str) -> None:
            own, own_marked = (
                [entry for entry in among if entry.panel == dataset
                 and entry.point.cluster.software == named[name]] for among in (entries, marked))
            self.panel.fill(axes, self.metrics, results, own)
            found = [(entry.x, self.panel.height(self.metrics, results, entry))
                     for entry in own_marked]
            there = [(x, value) for x, value in found if value is not None]
            if there:
                axes.plot(*zip(*there), linestyle="none", marker="D", markersize=8, color="black",
                          fillstyle="none", markeredgewidth=1.5, label="RTL")

        save(grid(datasets, list(named), self.heading,
                  of_points([entry.point for entry in entries]), draw), path)


def _at_reference(point: Point, setting: Setting) -> bool:
    """Return whether a point has a NIC, on the Kaggle shape, at the reference setting."""
    workload, system = point.workload, point.system
    return (workload.dataset == "kaggle" and point.kind.in_rtl
            and point.cluster.nodes == setting.nodes
            and workload.samples == setting.mini_batch("kaggle")
            and {system.local_cache, system.remote_cache} <= {0.0, 0.1})
