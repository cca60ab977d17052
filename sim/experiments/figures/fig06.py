"""Figure 6: skew of the rows' use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.data.similarity import skew
from sim.evaluation.setting import Setting, samples_of
from sim.evaluation.store import Results
from sim.experiments.figures.captions import of_samples
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.row import cluster_of
from sim.page.chart import Axis, Chart, Panel, Series
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

_SAMPLES = 8192
_RANK = "accesses_of_rank_"


@dataclass(frozen=True)
class _Skew(Figure):
    """Accesses of rows by rank, and the shares of the most used rows."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return, for each data set, accesses by rank, and the shares of the most used rows."""
        rows = []
        for dataset in setting.datasets:
            samples = samples_of(setting, dataset, _SAMPLES)
            shares = skew(samples)
            used = np.sort(np.unique(samples.keys, return_counts=True)[1])[::-1]
            ranks = np.unique(np.geomspace(1, len(used), 60).astype(np.int64))
            values = [("top_1_percent_share", shares.top1, "1"),
                      ("top_10_percent_share", shares.top10, "1"),
                      ("unique_rows", shares.unique, "rows"),
                      ("accesses", shares.accesses, "accesses"),
                      *((f"{_RANK}{rank}", int(used[rank - 1]), "accesses")
                        for rank in ranks.tolist())]
            rows += [Row(dataset, cluster_of(1), len(samples), "none", "none", "samples", metric,
                         value, unit)
                     for metric, value, unit in values]
        return rows

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return accesses over rank, both logarithmic."""
        def panel(dataset: str) -> Panel:
            own = [row for row in rows if row.workload == dataset]
            curve = [row for row in own if row.metric.startswith(_RANK)]
            named = {row.metric: row.value for row in own}
            return Panel(
                title=dataset, x=Axis("row, by number of accesses", log=True),
                y=Axis("accesses", log=True), series=[Series(
                    name="accesses", marker="", y=[row.value for row in curve],
                    x=[int(row.metric.removeprefix(_RANK)) for row in curve])],
                note=f"top 1 % of the rows: {named['top_1_percent_share']:.0%} of accesses; "
                     f"top 10 %: {named['top_10_percent_share']:.0%}")

        return Chart(name=self.name, title=self.heading, columns=len(setting.datasets),
                     setting=f"{rows[0].mini_batch:,} samples on one node, no NIC, no model; "
                             f"{of_samples(setting)}",
                     panels=[panel(dataset) for dataset in setting.datasets])


EXHIBIT = _Skew("fig06", "Skew of the rows' use", demo=True,
                about="Rows by number of accesses, both axes logarithmic.")
