"""Figure 19: speedup of inference over the size of the remote cache."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import REMOTE_SIZE, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig19", "Inference: speedup over the size of the remote cache",
    over_sizes((("RC", "rc"), ("GA+RC", "ga+rc")), "remote_cache"), speedups("inference"),
    Lines("speedup over BL, time per mini-batch", REMOTE_SIZE, x_share=True))
