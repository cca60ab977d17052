"""Picture of ``hitrate``: hit rates against the size of the cache."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from sim.files.pictures import write_picture
from sim.run.picture import BLUE, ORANGE

__all__ = ["draw_hitrate"]

_STYLES = ("-", "--", ":", "-.")
"""A line style for each policy."""


def draw_hitrate(result: dict, path: str | Path) -> None:
    """Draw ``result`` of `sim.offline.hitrate.hitrate` to ``path`` (PNG, SVG or PDF)."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    policies = list(dict.fromkeys(row["policy"] for row in result["rows"]))
    for number, policy in enumerate(policies):
        rows = sorted((row for row in result["rows"] if row["policy"] == policy),
                      key=lambda row: row["size"])
        for name, what, colour, marker in (("hit_rate", "all lookups", BLUE, "o"),
                                           ("hit_rate_unique", "unique keys", ORANGE, "s")):
            points = [(row["size"], 100 * row[name]) for row in rows if row[name] is not None]
            axes.plot([size for size, _ in points], [rate for _, rate in points], color=colour,
                      marker=marker, linestyle=_STYLES[number % len(_STYLES)],
                      label=f"{policy.upper()}, {what}")
    sizes = sorted({row["size"] for row in result["rows"]})
    positive = [size for size in sizes if size]
    if sizes[0] == 0 and positive:
        # Size 0 has no logarithm: draw a disabled cache left of the smallest size.
        axes.set_xscale("symlog", linthresh=positive[0], linscale=0.4)
        axes.set_xlim(left=-0.1 * positive[0])
    elif positive:
        axes.set_xscale("log")
    if len(sizes) <= 8 and all(high >= 1.5 * low for low, high in pairwise(sizes)):
        axes.xaxis.set_major_locator(FixedLocator(sizes))
    elif sizes[0] == 0:
        axes.xaxis.set_major_locator(FixedLocator([0, *_powers(positive)]))
    if len(sizes) <= 8 or sizes[0] == 0:
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size else "off")
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_formatter(PercentFormatter())
    axes.set_xlabel("rows of a node's local cache (logarithmic)")
    axes.set_ylabel("hit rate")
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    source = (f"generated, like {result['model']}" if result["data"] is None
              else f"{_names(result['data'])} ({result['format']})")
    ways = f"{result['ways']} ways" if result["ways"] else "fully associative"
    nodes = "1 node" if result["nodes"] == 1 else f"{result['nodes']} nodes"
    start = (f"after {result['warmup']:,} mini-batches" if result["warmup"]
             else "cold at the start")
    figure.suptitle(
        f"{result['samples']:,} samples: {source}\n{nodes}, placement {result['placement']}, "
        f"mini-batch {result['mini_batch']:,}, {ways}, {start}", fontsize=11)
    write_picture(figure, path, dpi=150)


def _powers(sizes: list[int]) -> list[int]:
    """Return the powers of ten in the range of the sizes, or the smallest size if there is none."""
    powers = [10 ** digits for digits in range(len(str(sizes[-1]))) if 10 ** digits >= sizes[0]]
    return powers or sizes[:1]


def _names(data: str | Sequence[str]) -> str:
    """Return the name of the file, or the number of files."""
    return Path(data).name if isinstance(data, str) else f"{len(data)} files"
