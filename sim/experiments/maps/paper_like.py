"""The headlines in the paper-like setting, next to the reference setting's."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.evaluation.fields import WORKLOADS
from sim.evaluation.point import Point
from sim.evaluation.setting import BASES, FULL_SYSTEMS, SETTINGS, Setting, like
from sim.evaluation.store import Results
from sim.experiments.claims.headlines import headlines, in_words
from sim.experiments.figures.exhibit import Exhibit
from sim.experiments.figures.row import cluster_of
from sim.page.content import Column, Section, Table
from sim.page.rows import Row

__all__ = ["EXHIBIT"]

@dataclass(frozen=True)
class _PaperLike(Exhibit):
    """The full system in both settings."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the full systems and their baselines in each setting, with every seed."""
        return [own.point(dataset, system, workload, software, seed=seed)
                for seed in setting.seeds for own in _settings(setting).values()
                for dataset in own.datasets for workload in WORKLOADS for software in own.softwares
                for system in (*FULL_SYSTEMS, *BASES)]

    def over_seeds(self, setting: Setting) -> bool:
        """Return whether there are several seeds; headlines use all of them."""
        return len(setting.seeds) > 1

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the speedups in each setting."""
        return [Row(dataset, cluster_of(own.nodes), own.mini_batch(dataset), row["software"],
                    own.fidelity,
                    row["system"].upper(), f"{row['workload']}_speedup_vs_{row['base']} [{name}]",
                    value, "x")
                for name, own in _settings(setting).items() for row in headlines(own, results)
                for dataset, value in row["speedups"].items()]

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the headlines side by side."""
        settings = _settings(setting)
        found = [headlines(own, results) for own in settings.values()]
        return [Section(self.title, [Table(
            ["system", "workload", "software", "over", *(
                part for name in settings for part in (Column(name, "s"), f"{name}, by data set"))],
            [[each[0]["system"].upper(), *(each[0][name] for name in (
                "workload", "software", "base")), *(part for row in each for part in in_words(row))]
             for each in zip(*found)],
            f"paper-like: {settings['paper-like'].in_words()}. All its figures and claims: "
            "python -m sim reproduce --setting paper-like --output DIR")])]


def _settings(setting: Setting) -> dict[str, Setting]:
    """Return both settings by name, with the cluster and data of ``setting``."""
    return {name: like(setting, name) for name in SETTINGS}


EXHIBIT = _PaperLike("paper_like", "The headline where most of the paper's claims hold")
