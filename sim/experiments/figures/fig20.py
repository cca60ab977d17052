"""Figure 20: remote lookups of inference that the remote cache saves."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import Metric
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import REMOTE_SIZE, first_profile, hit_rates, over_sizes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig20", "Inference: remote lookups saved by the remote cache",
    first_profile(over_sizes((("RC", "rc"), ("GA+RC", "ga+rc")), "remote_cache")),
    (Metric("saved_lookups", "saved_lookups", "lookups"), *hit_rates("remote_cache")),
    Lines("lookups saved", REMOTE_SIZE, x_share=True))
