"""Figures 14, 15 and 26: more nodes, and larger mini-batches."""

from sim.experiments.figures.figure import Bar, Entry, Figure, Metric, cases, speedups
from sim.experiments.points.setting import BASES, Setting

__all__ = ["BATCH_FACTORS", "CPU_BASE", "FIG14", "FIG15", "FIG26", "few"]

CPU_BASE = "cpu-mpi, 2 nodes"
"""The paper's overall baseline."""

BATCH_FACTORS = (1, 2, 4, 8, 16)
"""Mini-batches of figure 26, in those of the reference setting."""

_INFERENCE: tuple[Bar, ...] = (
    ("CPU-MPI", "cpu-mpi"), ("BL", "bl-paper"), ("BL-tuned", "bl-tuned"), ("GA", "ga"),
    ("LC", "lc"), ("RC", "rc"), ("SC", "sc"), ("FS", "fs"))
_TRAINING: tuple[Bar, ...] = tuple(bar for bar in _INFERENCE if bar[0] != "RC")


def _nodes(lines: tuple[Bar, ...], workload: str):
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, label, nodes, label,
                      setting.point(dataset, system, workload, software, nodes=nodes),
                      ((CPU_BASE, setting.point(dataset, "cpu-mpi", workload, software, nodes=2)),))
                for dataset, software in cases(setting)
                for label, system in lines
                for nodes in setting.numbers_of_nodes(dataset)]
    return entries


FIG14 = Figure(
    "fig14", "Inference: speedup over nodes", _nodes(_INFERENCE, "inference"),
    (Metric("interval_speedup_vs_cpu-mpi_2_nodes", "interval_us", "x", "less", CPU_BASE),
     Metric("service_speedup_vs_cpu-mpi_2_nodes", "service_us", "x", "less", CPU_BASE),
     Metric("interval_us", "interval_us", "us"), Metric("service_us", "service_us", "us")),
    "lines", "nodes", "speedup over 2-node CPU-MPI", "log2", claims=("C13", "C18"))

FIG15 = Figure(
    "fig15", "Training: speedup over nodes", _nodes(_TRAINING, "training"),
    (Metric("throughput_speedup_vs_cpu-mpi_2_nodes", "samples_per_second", "x", "more", CPU_BASE),
     Metric("samples_per_second", "samples_per_second", "samples/s")),
    "lines", "nodes", "speedup over 2-node CPU-MPI", "log2", claims=("C14",))


def few(setting: Setting, dataset: str, factor: int) -> dict[str, int]:
    """Return the fields of a point of figure 26: larger mini-batches, fewer of them, so that the
    largest do not take all the time of the evaluation."""
    return {"mini_batch": factor * setting.mini_batch(dataset)} | {
        name: max(2, count // factor) for name, count in setting.sweep(dataset).items()}


def _batches(setting: Setting) -> list[Entry]:
    entries = []
    for dataset, software in cases(setting):
        for label, system in (("SC", "sc"), ("LC+SC", "lc+sc")):
            for factor in BATCH_FACTORS:
                fields = few(setting, dataset, factor)
                entries.append(Entry(
                    dataset, label, fields["mini_batch"], label,
                    setting.point(dataset, system, "training", software, **fields),
                    tuple((base, setting.point(dataset, base, "training", software, **fields))
                          for base in BASES)))
    return entries


FIG26 = Figure(
    "fig26", "Training: speedup over the size of a mini-batch", _batches, speedups("training"),
    "lines", "samples of a mini-batch, all nodes", "speedup over BL, samples per second", "log2",
    about="Larger mini-batches: fewer are measured, over the same samples.", claims=("C12",))
