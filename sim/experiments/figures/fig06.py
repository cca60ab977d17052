"""Figure 6: how unevenly the rows of the tables are used."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from host.data.similarity import skew
from sim.evaluation.setting import Setting, samples_of
from sim.evaluation.store import Results
from sim.experiments.figures.captions import of_samples
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.experiments.figures.row import Row

__all__ = ["EXHIBIT"]

_SAMPLES = 8192
_RANK = "accesses_of_rank_"


@dataclass(frozen=True)
class _Skew(Figure):
    """Accesses of rows by rank, and the shares of the most used ones."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return, for each data set, accesses by rank, and what the most used rows take."""
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
            rows += [Row(dataset, 1, len(samples), "none", "none", "samples", metric, value, unit)
                     for metric, value, unit in values]
        return rows

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw accesses over rank, both logarithmic."""
        def draw(axes: Axes, dataset: str, _: str) -> None:
            own = [row for row in rows if row.dataset == dataset]
            curve = [(int(row.metric.removeprefix(_RANK)), row.value) for row in own
                     if row.metric.startswith(_RANK)]
            named = {row.metric: row.value for row in own}
            axes.plot(*zip(*curve), color=COLOURS[0], linewidth=1.6)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("row, by how often it is used", fontsize=9)
            axes.set_ylabel("accesses", fontsize=9)
            axes.text(0.97, 0.95, f"top 1 %: {named['top_1_percent_share']:.0%} of accesses\n"
                      f"top 10 %: {named['top_10_percent_share']:.0%}", ha="right", va="top",
                      fontsize=9, transform=axes.transAxes)

        save(grid(setting.datasets, [""], self.heading,
                  f"{rows[0].mini_batch:,} samples in one place, no NIC, no model; "
                  f"{of_samples(setting)}", draw), path)


EXHIBIT = _Skew("fig06", "How unevenly rows are used", demo=True,
                about="Rows by how often they are used, both axes logarithmic.")
