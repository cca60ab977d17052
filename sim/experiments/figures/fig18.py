"""Figure 18: hit rate of the local cache in inference."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import LOCAL_SIZE, first_profile, hit_rates, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig18", "Inference: hit rate of the local cache",
    first_profile(over_sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache")),
    hit_rates("local_cache"), Lines("hit rate per access", LOCAL_SIZE, x_share=True),
    about="A duplicate within a mini-batch counts as a hit; the CSV also has the rate without "
          "duplicates.")
