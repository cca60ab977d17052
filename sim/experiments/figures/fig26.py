"""Figure 26: speedup of training over the size of a mini-batch."""

from sim.evaluation.setting import BASES, Setting
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import cases

__all__ = ["BATCH_FACTORS", "EXHIBIT", "batch_fields"]

BATCH_FACTORS = (1, 2, 4, 8, 16)
"""Mini-batch sizes, as multiples of the reference setting's."""


def batch_fields(setting: Setting, dataset: str, factor: int) -> dict[str, int]:
    """Return the fields of a point with mini-batches ``factor`` times as large.

    Fewer of them are measured, to limit the time of the evaluation.
    """
    return {"mini_batch": factor * setting.mini_batch(dataset)} | {
        name: max(2, count // factor) for name, count in setting.sweep(dataset).items()}


def _entries(setting: Setting) -> list[Entry]:
    entries = []
    for dataset, software in cases(setting):
        for label, system in (("SC", "sc"), ("LC+SC", "lc+sc")):
            for factor in BATCH_FACTORS:
                fields = batch_fields(setting, dataset, factor)
                entries.append(Entry(
                    dataset, label, fields["mini_batch"], label,
                    setting.point(dataset, system, "training", software, **fields),
                    tuple((base, setting.point(dataset, base, "training", software, **fields))
                          for base in BASES)))
    return entries


EXHIBIT = Plot(
    "fig26", "Training: speedup over the size of a mini-batch", _entries, speedups("training"),
    Lines("speedup over BL, samples per second", "samples of a mini-batch, all nodes"),
    about="The samples are the same for all sizes, so fewer large mini-batches are measured.")
