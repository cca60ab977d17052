"""The picture of ``hitrate``: hit rates against the size of the cache."""

from itertools import pairwise
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter, StrMethodFormatter

from sim.picture import BLUE, ORANGE

__all__ = ["draw_hitrate"]

_STYLES = ("-", "--", ":", "-.")
"""A line style for each policy."""


def draw_hitrate(result: dict, path: str | Path) -> None:
    """Draw ``result`` of `sim.hitrate.hitrate` to ``path`` (PNG, SVG or PDF by its ending)."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    policies = list(dict.fromkeys(row["policy"] for row in result["rows"]))
    for number, policy in enumerate(policies):
        rows = sorted((row for row in result["rows"] if row["policy"] == policy),
                      key=lambda row: row["size"])
        for name, what, colour, marker in (("hit_rate", "every lookup", BLUE, "o"),
                                           ("hit_rate_unique", "unique keys", ORANGE, "s")):
            points = [(row["size"], 100 * row[name]) for row in rows if row[name] is not None]
            axes.plot([size for size, _ in points], [rate for _, rate in points], color=colour,
                      marker=marker, linestyle=_STYLES[number % len(_STYLES)],
                      label=f"{policy.upper()}, {what}")
    axes.set_xscale("log")
    sizes = sorted({row["size"] for row in result["rows"]})
    if len(sizes) <= 8 and all(high >= 1.5 * low for low, high in pairwise(sizes)):
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_formatter(PercentFormatter())
    axes.set_xlabel("rows of a node's local cache (logarithmic)")
    axes.set_ylabel("hit rate")
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    source = (f"generated, like {result['model']}" if result["data"] is None
              else f"{Path(result['data']).name} ({result['format']})")
    ways = f"{result['ways']} ways" if result["ways"] else "fully associative"
    nodes = "1 node" if result["nodes"] == 1 else f"{result['nodes']} nodes"
    figure.suptitle(
        f"{result['samples']:,} samples: {source}\n{nodes}, placement {result['placement']}, "
        f"mini-batch {result['mini_batch']:,}, {ways}, cold at the start", fontsize=11)
    figure.savefig(path, dpi=150)
