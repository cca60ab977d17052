"""The headline where most of the paper's claims hold, beside the reference setting's."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.experiments.claims.headlines import headlines
from sim.experiments.claims.verdict import times
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.row import Row
from sim.experiments.figures.section import Section
from sim.experiments.points.point import WORKLOADS, Point
from sim.experiments.points.setting import BASES, SETTINGS, Setting, like
from sim.experiments.sweep.sweep import Results

__all__ = ["EXHIBIT"]

_SECTION = """\
<h2>{{ title }}</h2>
<p><b>paper-like</b>: {{ said }}. Again, with all its figures and claims: <code>python -m sim
reproduce --setting paper-like --output DIR</code></p>
<table>
<tr><th>full system</th><th>software</th><th>over</th>
{% for name in names %}<th>{{ name }}</th><th>by data set</th>{% endfor %}</tr>
{% for row in rows %}
<tr><td>{{ row.workload }}</td><td>{{ row.software }}</td><td>{{ row.base }}</td>
{% for mean, each in row.found %}<td class="n">{{ mean }}</td><td>{{ each }}</td>{% endfor %}</tr>
{% endfor %}
</table>
"""


@dataclass(frozen=True)
class _PaperLike(Table):
    """The full system in both settings."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the full system and its baselines in each setting."""
        return [own.point(dataset, system, workload, software)
                for own in _settings(setting).values() for dataset in own.datasets
                for workload in WORKLOADS for software in own.softwares
                for system in ("fs", *BASES)]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the speedups in each setting."""
        return [Row(dataset, own.nodes, own.mini_batch(dataset), row["software"], own.fidelity,
                    "FS", f"{row['workload']}_speedup_vs_{row['base']} [{name}]", value, "x")
                for name, own in _settings(setting).items() for row in headlines(own, results)
                for dataset, value in row["speedups"].items()]

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the headlines side by side."""
        settings = _settings(setting)
        found = [headlines(own, results) for own in settings.values()]
        return [Section(_SECTION, {
            "title": self.title, "names": list(settings),
            "said": settings["paper-like"].in_words(), "rows": [
                {name: each[0][name] for name in ("workload", "software", "base")}
                | {"found": [("n/a" if row["mean"] is None else f"{row['mean']:.2f}x",
                              times(row["speedups"])) for row in each]} for each in zip(*found)]})]


def _settings(setting: Setting) -> dict[str, Setting]:
    """Return both settings by name, on the cluster and the data of ``setting``."""
    return {name: like(setting, name) for name in SETTINGS}


EXHIBIT = _PaperLike("paper_like", "The headline where most of the paper's claims hold")
