"""Picture of ``plan``: bytes of each node against its memory, and time of a mini-batch."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sim.files.pictures import write_picture
from sim.offline.plan_table import UNITS, size
from sim.run.picture import BLUE, GREEN, ORANGE

__all__ = ["draw_plan"]

_PARTS = (("row_bytes", "embedding rows", BLUE), ("optimizer_bytes", "optimizer state", ORANGE),
          ("mlp_bytes", "weights of the MLPs", GREEN))
_NEAR = 5
"""The capacity is drawn up to this multiple of the fullest node's bytes."""


def draw_plan(result: dict, path: str | Path) -> None:
    """Draw ``result`` of `sim.offline.plan.plan` to ``path`` (PNG, SVG or PDF, by its suffix)."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    memory, times = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_memory(memory, result)
    _draw_times(times, result)
    for axes in (memory, times):
        axes.spines[["top", "right"]].set_visible(False)
    model = result["model"]
    source = (f"generated, like {model['name']}" if result["data"] is None
              else f"of format {result['format']}")
    nodes = "1 node" if result["nodes"] == 1 else f"{result['nodes']} nodes"
    figure.suptitle(f"{model['name']} ({model['rows']:,} rows) on {nodes}, cluster "
                    f"{result['cluster']}, config {result['config']}, placement "
                    f"{result['placement']}\n{result['samples']:,} samples: {source}", fontsize=11)
    write_picture(figure, path, dpi=150)


def _draw_memory(axes, result: dict) -> None:
    nodes, capacity = result["memory"]["nodes"], result["memory"]["gpu_bytes"]
    fullest = max(node["bytes"] for node in nodes)
    # A capacity far above the contents is only named, since drawing it would flatten the bars.
    near = capacity <= _NEAR * fullest
    top = max(fullest, capacity if near else 0)
    power = min(len(UNITS) - 1, (len(str(top)) - 1) // 3)
    scale = 1000 ** power
    numbers = range(len(nodes))
    floor = [0.0] * len(nodes)
    for part, what, colour in _PARTS:
        heights = [node[part] / scale for node in nodes]
        if any(heights):
            axes.bar(numbers, heights, 0.7, bottom=floor, color=colour, label=what)
        floor = [low + height for low, height in zip(floor, heights)]
    if near:
        axes.axhline(capacity / scale, color="0.2", linestyle="--",
                     label=f"GPU memory, {size(capacity)}")
    else:
        axes.plot([], [], " ", label=f"GPU memory: {size(capacity)}, far above")
    axes.set_ylim(0, 1.45 * top / scale)
    if len(nodes) <= 16:
        for number, (node, height) in enumerate(zip(nodes, floor)):
            text = "" if node["share"] is None else _percent(node["share"])
            axes.annotate(text, (number, height), (0, 2), textcoords="offset points",
                          ha="center", va="bottom", fontsize=8,
                          rotation=90 if len(nodes) > 8 else 0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(-0.6, len(nodes) - 0.4)
    axes.set_xlabel("node")
    axes.set_ylabel(f"memory ({UNITS[power]})")
    axes.set_title("Bytes of a node, and its share of GPU memory", fontsize=10)
    axes.legend(loc="upper left", fontsize=8, frameon=False)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _draw_times(axes, result: dict) -> None:
    rows = result["resources"]
    names = [f"{row['name']} ({row['rate']})" for row in rows]
    least = [row["least_us"] for row in rows]
    colours = [ORANGE if row["name"] == result["binds"] else BLUE for row in rows]
    axes.barh(names, least, 0.7, color=colours)
    widest = max(row["expected_us"] for row in rows)
    fuller = [row for row in rows if row["expected_us"] - row["least_us"] > 0.003 * widest]
    if fuller:
        axes.barh([f"{row['name']} ({row['rate']})" for row in fuller],
                  [row["expected_us"] - row["least_us"] for row in fuller], 0.7,
                  left=[row["least_us"] for row in fuller], color="none", edgecolor="0.35",
                  hatch="////", linewidth=0.6, label="more, with packets as full as expected")
    for number, row in enumerate(rows):
        axes.text(row["expected_us"] + 0.015 * widest, number, f"{row['least_us']:.2f}",
                  va="center", fontsize=8)
    # The first bar on top, and room for the legend below the last.
    axes.set_ylim(len(rows) + 0.4, -0.6)
    axes.set_xlim(0, 1.14 * widest)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(f"time for a mini-batch of {result['mini_batch']:,} at the busiest node (us)")
    axes.set_title(f"bottleneck: {result['binds']}, at most "
                   f"{result['samples_per_second'] / 1e6:.3g} million samples/s", fontsize=10)
    if fuller:
        axes.legend(loc="lower right", fontsize=8, frameon=False)
