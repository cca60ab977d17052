"""Entries that several plots share: systems side by side, over nodes, over cache sizes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sim.evaluation.setting import BASES, FULL_SYSTEMS, Setting
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.metric import Metric

__all__ = [
    "CPU_BASE",
    "FULL",
    "INFERENCE_SYSTEMS",
    "LOCAL_SIZE",
    "REMOTE_SIZE",
    "TRAINING_SYSTEMS",
    "Entries",
    "System",
    "cases",
    "every_seed",
    "first_profile",
    "hit_rates",
    "over_nodes",
    "over_sizes",
    "side_by_side",
]

System = tuple[str, str]
"""Name of a line or bar, and its system."""

Entries = Callable[[Setting], list[Entry]]

CPU_BASE = "cpu-mpi, 2 nodes"
"""The paper's overall baseline."""

FULL: tuple[System, ...] = tuple((name.upper(), name) for name in FULL_SYSTEMS)
"""The full systems."""

INFERENCE_SYSTEMS: tuple[System, ...] = (
    ("CPU-MPI", "cpu-mpi"), ("BL", "bl-paper"), ("BL-tuned", "bl-tuned"), ("GA", "ga"),
    ("LC", "lc"), ("RC", "rc"), ("SC", "sc"), *FULL)
TRAINING_SYSTEMS: tuple[System, ...] = (
    ("CPU-MPI", "cpu-mpi"), ("BL", "bl-paper"), ("BL-tuned", "bl-tuned"), ("GA", "ga"),
    ("NIC", "nic"), ("LC", "lc"), ("SC", "sc"), *FULL)
"""Lines over nodes."""

LOCAL_SIZE = "local cache (% of the unique keys that reach it)"
REMOTE_SIZE = "remote cache (% of the unique keys that reach it)"
"""Labels of axes."""

_TABLE_ONLY = ("all-on-nic",)
"""An analytical bound, not drawn because its scale would hide the other bars."""


def cases(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield every data set with every software profile."""
    for dataset in setting.datasets:
        for software in setting.softwares:
            yield dataset, software


def side_by_side(systems: Sequence[System], workload: str) -> Entries:
    """Return the entries of bars, one per system, at the reference setting."""
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, software, label, label,
                      setting.point(dataset, system, workload, software),
                      tuple((base, setting.point(dataset, base, workload, software))
                            for base in BASES), drawn=system not in _TABLE_ONLY)
                for dataset, software in cases(setting) for label, system in systems]
    return entries


def over_nodes(systems: Sequence[System], workload: str) -> Entries:
    """Return the entries of lines over the number of nodes."""
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, label, nodes, label,
                      setting.point(dataset, system, workload, software, nodes=nodes),
                      ((CPU_BASE, setting.point(dataset, "cpu-mpi", workload, software, nodes=2)),))
                for dataset, software in cases(setting)
                for label, system in systems
                for nodes in setting.numbers_of_nodes(dataset)]
    return entries


def over_sizes(systems: Sequence[System], cache: str, workload: str = "inference",
               bases: Sequence[str] = BASES) -> Entries:
    """Return the entries of lines over the sizes of ``cache``; the other cache keeps its size.

    ``bases``: baselines of speedups, measured with the same number of mini-batches.
    """
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, label, 100 * share, f"{label} {100 * share:g}%",
                      setting.point(dataset, system, workload, software, **{cache: share}),
                      tuple((base, setting.point(dataset, base, workload, software,
                                                 **setting.sweep(dataset))) for base in bases))
                for dataset, software in cases(setting)
                for label, system in systems for share in setting.sizes(dataset)]
    return entries


def every_seed(entries: Entries) -> Entries:
    """Measure entries with every seed of the setting instead of the first alone."""
    def of_all(setting: Setting) -> list[Entry]:
        return [replace(entry, seeds=setting.seeds) for entry in entries(setting)]
    return of_all


def first_profile(entries: Entries) -> Entries:
    """Keep the entries of the first software profile: hits and lookups do not depend on the
    profile."""
    def of_first(setting: Setting) -> list[Entry]:
        return [entry for entry in entries(setting)
                if entry.point.cluster.software == setting.softwares[0]]
    return of_first


def hit_rates(cache: str) -> tuple[Metric, ...]:
    """Return the hit rate of a cache, with duplicates within a mini-batch as hits and without."""
    return (Metric(f"{cache}_hit_rate", f"{cache}.hit_rate", "1"),
            Metric(f"{cache}_hit_rate_unique", f"{cache}.hit_rate_unique", "1"))
