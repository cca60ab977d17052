"""Figure 8: how similar the samples of a mini-batch are, and ways to form mini-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.captions import mini_batches, of_samples
from sim.experiments.figures.exhibit import Figure
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.experiments.figures.row import Row
from sim.experiments.figures.section import Section
from sim.experiments.figures.similarity import compared, similarities

__all__ = ["EXHIBIT"]

_SHOWN = ("graph", "greedy", "file")

_WAYS = """\
<h2>Ways to form mini-batches</h2>
<p>On the same windows of 16 mini-batches, averaged until drained. Time saved is that of
<code>bl-paper</code> per mini-batch; <code>python -m sim batching</code> measures what each way
costs.</p>
<table>
<tr><th>data set</th><th>algorithm</th><th>unique keys</th><th>saved</th>
<th>time saved, us</th></tr>
{% for row in rows %}
<tr><td>{{ row.dataset }}</td><td>{{ row.algorithm }}{{ " (saves most)" if row.wins }}</td>
<td class="n">{{ "%.0f" | format(row.unique_keys) }}</td>
<td class="n">{{ "%.1f%%" | format(100 * row.saved) }}</td>
<td class="n">{{ row.time_saved }}</td></tr>
{% endfor %}
</table>
"""


@dataclass(frozen=True)
class _Similarity(Figure):
    """Similarity of mini-batches one after the other, over several windows."""

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the similarity of each mini-batch, and what each algorithm saves in unique keys.
        """
        rows = []
        for dataset in setting.datasets:
            size = setting.mini_batch(dataset)
            for name in _SHOWN:
                for number, (fresh, similarity) in enumerate(similarities(setting, dataset, name)):
                    what = "similarity_after_refresh" if fresh else "similarity"
                    rows.append(Row(dataset, 1, size, "none", "none", name,
                                    f"{what}_of_mini_batch_{number}", similarity, "1"))
            rows += [Row(dataset, 1, size, "none", "none", found["algorithm"], metric,
                         found[metric], unit)
                     for found in compared(setting, dataset)
                     for metric, unit in (("unique_keys", "keys"), ("saved", "1"),
                                          ("similarity", "1"))]
        return rows

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw similarity over mini-batches; refreshes of the window are circles."""
        def draw(axes: Axes, dataset: str, _: str) -> None:
            for number, name in enumerate(_SHOWN):
                own = [row for row in rows if row.dataset == dataset and row.system == name
                       and "_of_mini_batch_" in row.metric]
                axes.plot(range(len(own)), [row.value for row in own], color=COLOURS[number],
                          label=name, linewidth=1.4, marker="." if name != "file" else None)
                if name == "graph":
                    fresh = [(at, row.value) for at, row in enumerate(own)
                             if row.metric.startswith("similarity_after")]
                    axes.plot(*zip(*fresh), "o", color=COLOURS[3], markersize=9, fillstyle="none",
                              label="window refreshed")
            axes.set_ylim(0, 1.05)
            axes.set_xlabel("mini-batch", fontsize=9)
            axes.set_ylabel("similarity: 1 - unique keys / accesses", fontsize=9)

        save(grid(setting.datasets, [""], self.heading,
                  f"window of 16 mini-batches, mini-batch {mini_batches(setting)}, all nodes; "
                  f"{of_samples(setting)}", draw, height=3.2), path)

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a table of the algorithms: what each saves, and what it costs."""
        return [Section(_WAYS, {"rows": _ways(setting, results)})]


def _ways(setting: Setting, results: Results) -> list[dict]:
    rows = []
    for dataset in setting.datasets:
        found = compared(setting, dataset)
        best = max(row["saved"] for row in found)
        for row in found:
            saved = "n/a"
            if row["algorithm"] == "graph":
                plain, graph = (results.value(setting.point(dataset, system), "interval_us")
                                for system in ("bl-paper", "ga"))
                saved = "n/a" if plain is None or graph is None else f"{plain - graph:.0f}"
            rows.append(row | {"dataset": dataset, "wins": row["saved"] == best,
                               "time_saved": saved})
    return rows


EXHIBIT = _Similarity("fig08", "How alike a mini-batch's samples are", demo=True,
                      about="Mini-batches one after the other until a window is drained.")
