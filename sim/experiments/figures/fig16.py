"""Figure 16: speedup of inference over the size of the local cache."""

from sim.evaluation.setting import BASES
from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import Metric, speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import LOCAL_SIZE, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig16", "Inference: speedup over the size of the local cache",
    over_sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache", bases=(*BASES, "nic")),
    (*speedups("inference"), Metric("interval_speedup_vs_nic", "interval_us", "x", "nic")),
    Lines("speedup over BL, time per mini-batch", LOCAL_SIZE, x_share=True))
