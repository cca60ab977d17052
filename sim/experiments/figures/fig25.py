"""Figure 25: speedup of training by technique."""

from sim.experiments.figures.plots.bars import Bars
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import FULL, System, every_seed, side_by_side

__all__ = ["EXHIBIT"]

_SYSTEMS: tuple[System, ...] = (
    ("BL-tuned", "bl-tuned"), ("GA", "ga"), ("NIC", "nic"), ("GA+NIC", "ga+nic"), ("LC", "lc"),
    ("SC", "sc"), *FULL, ("EN", "en"), ("GA+BL-tuned", "bl-tuned+ga"))

EXHIBIT = Plot(
    "fig25", "Training: speedup by technique", every_seed(side_by_side(_SYSTEMS, "training")),
    speedups("training"), Bars("speedup over BL, samples per second"), demo=True,
    about="All systems include the MLPs' all-reduce; the CSV also has speedups without it.")
