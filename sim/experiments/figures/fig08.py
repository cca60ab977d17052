"""Figure 8: similarity of a mini-batch's samples, and ways to form mini-batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.captions import mini_batches, of_samples
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.row import cluster_of
from sim.experiments.figures.similarity import compared, similarities
from sim.page.chart import COLOURS, Axis, Chart, Panel, Series
from sim.page.content import Column, Section, Table
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

_SHOWN = ("graph", "greedy", "file")


@dataclass(frozen=True)
class _Similarity(Figure):
    """Similarity of consecutive mini-batches, over several windows."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the similarity of each mini-batch, and the unique keys that each algorithm saves.
        """
        rows = []
        for dataset in setting.datasets:
            size = setting.mini_batch(dataset)
            for name in _SHOWN:
                for number, (fresh, similarity) in enumerate(similarities(setting, dataset, name)):
                    what = "similarity_after_refresh" if fresh else "similarity"
                    rows.append(Row(dataset, cluster_of(1), size, "none", "none", name,
                                    f"{what}_of_mini_batch_{number}", similarity, "1"))
            rows += [Row(dataset, cluster_of(1), size, "none", "none", found["algorithm"], metric,
                         found[metric], unit)
                     for found in compared(setting, dataset)
                     for metric, unit in (("unique_keys", "keys"), ("saved", "1"),
                                          ("similarity", "1"))]
        return rows

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return similarity over mini-batches; rings mark a new window."""
        def panel(dataset: str) -> Panel:
            lines = []
            for number, name in enumerate(_SHOWN):
                own = [row for row in rows if row.workload == dataset and row.system == name
                       and "_of_mini_batch_" in row.metric]
                lines.append(Series(name=name, x=list(range(len(own))), colour=COLOURS[number],
                                    y=[row.value for row in own],
                                    marker="circle" if name != "file" else ""))
                if name == "graph":
                    fresh = [at for at, row in enumerate(own)
                             if row.metric.startswith("similarity_after")]
                    lines.append(Series(name="window refreshed", kind="point", marker="ring",
                                        x=fresh, y=[own[at].value for at in fresh],
                                        colour=COLOURS[3]))
            return Panel(title=dataset, x=Axis("mini-batch"), series=lines,
                         y=Axis("similarity: 1 - unique keys / accesses", bounds=(0, 1.05)))

        return Chart(name=self.name, title=self.heading, columns=len(setting.datasets), height=3.2,
                     setting="window of 16 mini-batches, mini-batch "
                             f"{mini_batches(setting)}, all nodes; {of_samples(setting)}",
                     panels=[panel(dataset) for dataset in setting.datasets])

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a table of the algorithms: savings and cost."""
        return [Section("Ways to form mini-batches", [Table(
            ["data set", "algorithm", Column("unique keys", ",.0f"), Column("saved", ".1%"),
             Column("time saved, us", ",.0f")], _ways(setting, results),
            "On the same windows of 16 mini-batches, averaged until drained. Time saved is that of "
            "bl-paper per mini-batch; python -m sim batching measures the cost of each "
            "algorithm.")])]


def _ways(setting: Setting, results: Results) -> list[list]:
    rows = []
    for dataset in setting.datasets:
        found = compared(setting, dataset)
        best = max(row["saved"] for row in found)
        for row in found:
            saved = None
            if row["algorithm"] == "graph":
                plain, graph = (results.value(setting.point(dataset, system), "interval_us")
                                for system in ("bl-paper", "ga"))
                saved = None if plain is None or graph is None else plain - graph
            rows.append([dataset, row["algorithm"] + " (saves most)" * (row["saved"] == best),
                         row["unique_keys"], row["saved"], saved])
    return rows


EXHIBIT = _Similarity("fig08", "Similarity of a mini-batch's samples", demo=True,
                      about="Consecutive mini-batches until a window is drained.")
