"""Figure 24: hit rate of the local cache in training."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import LOCAL_SIZE, first_profile, hit_rates, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig24", "Training: hit rate of the local cache",
    first_profile(over_sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache", "training")),
    hit_rates("local_cache"), Lines("hit rate per access", LOCAL_SIZE, x_share=True))
