"""Figure 23: speedup of training over the size of the local cache."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import LOCAL_SIZE, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig23", "Training: speedup over the size of the local cache",
    over_sizes((("LC", "lc"), ("GA+LC", "ga+lc"), ("LC+SC", "lc+sc")), "local_cache", "training"),
    speedups("training"), Lines("speedup over BL, samples per second", LOCAL_SIZE, x_share=True))
