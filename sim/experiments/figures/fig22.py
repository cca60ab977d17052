"""Figure 22: speedup of inference by technique."""

from sim.experiments.figures.plots.bars import Bars
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import FULL, System, every_seed, side_by_side

__all__ = ["EXHIBIT"]

_SYSTEMS: tuple[System, ...] = (
    ("BL-tuned", "bl-tuned"), ("GA", "ga"), ("NIC", "nic"), ("GA+NIC", "ga+nic"), ("LC", "lc"),
    ("RC", "rc"), ("SC", "sc"), *FULL, ("EN", "en"), ("GA+BL-tuned", "bl-tuned+ga"),
    ("all on NIC", "all-on-nic"))

EXHIBIT = Plot(
    "fig22", "Inference: speedup by technique", every_seed(side_by_side(_SYSTEMS, "inference")),
    speedups("inference"), Bars("speedup over BL, time per mini-batch"), demo=True,
    about="Time per mini-batch in steady state; the CSV also has mini-batches that run alone, and "
          "the analytical value of everything on the NIC.")
