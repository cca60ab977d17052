"""Figure 21: hit rate of the local cache behind a growing remote cache."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import REMOTE_SIZE, first_profile, hit_rates, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig21", "Inference: hit rate of the local cache over the size of the remote cache",
    first_profile(over_sizes((("LC+RC", "lc+rc"), ("GA+LC+RC", "ga+lc+rc")), "remote_cache")),
    hit_rates("local_cache"),
    Lines("hit rate per access of the local cache", REMOTE_SIZE, x_share=True))
