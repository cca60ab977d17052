"""Picture of a run: lookups, rows read from the GPU, and latencies of mini-batches."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from sim.files.pictures import write_picture

__all__ = ["draw_run"]

# Okabe and Ito's palette, for colour-blind readers.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"


def draw_run(result: dict, path: str | Path) -> None:
    """Draw ``result`` to ``path`` (PNG, SVG or PDF, by its suffix)."""
    dedupe = result["dedupe"] or {}
    cache = result["local_cache"] or {}
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    funnel, latency = figure.subplots(1, 2)
    stages = [("lookups of all samples", result["lookups"], BLUE)]
    if dedupe:
        stages.append(("unique keys per owner and step", dedupe["unique"], ORANGE))
    stages.append(("rows fetched from the GPU", result["gpu"]["rows"], GREEN))
    names, values, colours = zip(*stages)
    bars = funnel.barh(names, values, color=colours)
    funnel.bar_label(bars, [f"{value:,} ({value / result['lookups']:.0%})" for value in values],
                     padding=4)
    funnel.invert_yaxis()
    funnel.set_xlim(0, 1.45 * max(values))
    funnel.xaxis.set_major_locator(MaxNLocator(4))
    funnel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    funnel.set_xlabel("rows")
    rate = cache.get("hit_rate_unique")
    funnel.set_title("Rows read from GPU memory" + (
        "" if rate is None else f" (local-cache hit rate {rate:.0%})"), fontsize=10)
    steps = result["latencies_us"]
    latency.plot(range(len(steps)), steps, color=BLUE, marker=".", linewidth=1)
    for name, colour, style in (("p50", ORANGE, "-"), ("p99", GREEN, "--")):
        value = result["latency_us"][name]
        if value is not None:
            latency.axhline(value, color=colour, linestyle=style, label=f"{name} {value:.1f} us")
    if steps:
        latency.set_ylim(0, 1.25 * max(steps))
        latency.legend(loc="upper right", ncols=2)
    else:
        latency.text(0.5, 0.5, "warm-up only", ha="center", va="center",
                     transform=latency.transAxes)
    latency.xaxis.set_major_locator(MaxNLocator(integer=True))
    latency.set_xlabel("mini-batch")
    latency.set_ylabel("latency (us)")
    latency.set_title("Latency from first query to last result", fontsize=10)
    for axes in (funnel, latency):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{result['samples']:,} samples ({result['model']['name']}), {result['nodes']} nodes, "
        f"config {result['config']['name']}, fidelity {result['fidelity']}", fontsize=11)
    write_picture(figure, path, dpi=150)
