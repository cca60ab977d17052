"""Figure 17: speedup of inference by SmartNIC computation."""

from sim.experiments.figures.plots.bars import Bars
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import side_by_side

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig17", "Inference: speedup by SmartNIC computation",
    side_by_side((("NIC", "nic"), ("SC", "sc"), ("GA+SC", "ga+sc")), "inference"),
    speedups("inference"), Bars("speedup over BL, time per mini-batch"),
    about="NIC is the SmartNIC as transport alone: dedupe, no cache, no computation.")
