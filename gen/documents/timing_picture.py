"""Picture of a timing report: MHz of each block in three cases of nets, and slack of all ends."""

import io
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["timing_picture"]

# Palette of Okabe and Ito, for colour-blind readers.
_COLOURS = {"pessimistic": "#D55E00", "middle": "#000000", "optimistic": "#0072B2"}
_BAR = "0.8"
_MARKS = {"pessimistic": "<", "middle": "o", "optimistic": ">"}
_CLOCKS = (250, 300)
_ROW, _MARGIN = 0.2, 4.6


def timing_picture(report: dict[str, Any]) -> str:
    """Return ``timing.svg``. The same report gives the same bytes.

    The upper plot shows the range of MHz of each block, the lowest in the middle case first. The
    lower plot shows the number of path ends by slack at 250 MHz.
    """
    # Without a salt, SVG ids are random. Font type "none" keeps text as text.
    with matplotlib.rc_context({"svg.hashsalt": report["name"], "svg.fonttype": "none"}):
        blocks = len(report["blocks"])
        figure = Figure(figsize=(9, _MARGIN + _ROW * blocks), layout="constrained")
        ranges, slack = figure.subplots(
            2, 1, height_ratios=(1 + _ROW * blocks, _MARGIN - 2))
        _ranges(ranges, report)
        _histogram(slack, report)
        figure.suptitle(f"{report['name']}: estimated from the netlist, not placed", fontsize=11)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def _ranges(axes: Axes, report: dict[str, Any]) -> None:
    blocks = report["blocks"]
    places = range(len(blocks))
    low, high = ([block[case]["mhz"] for block in blocks]
                 for case in ("pessimistic", "optimistic"))
    axes.hlines(places, low, high, color=_BAR, linewidth=5)
    for case, colour in _COLOURS.items():
        axes.plot([block[case]["mhz"] for block in blocks], places, linestyle="none",
                  marker=_MARKS[case], color=colour, markersize=4, label=f"{case} nets")
    prefix = f"{report['name']}_"
    axes.set_yticks(places, [block["name"].removeprefix(prefix).removeprefix("_")
                             for block in blocks], fontsize=8)
    axes.set_ylim(len(blocks) - 0.4, -0.6)
    axes.set_xlim(0, 1.03 * max(high))
    for clock in _CLOCKS:
        axes.axvline(clock, color="0.5", linewidth=1, linestyle="--" if clock == 300 else "-")
        axes.text(clock, -0.7, f"{clock}", ha="center", va="bottom", fontsize=8)
    axes.set_xlabel("MHz at which the worst path through the block has slack 0")
    axes.legend(fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)


def _histogram(axes: Axes, report: dict[str, Any]) -> None:
    for case in report["cases"]:
        bins = case["histogram"]
        width = bins["bin_ps"]
        edges = [bins["first_ps"] + width * k for k in range(len(bins["ends"]) + 1)]
        axes.stairs(bins["ends"], edges, color=_COLOURS[case["case"]], label=f"{case['case']} nets")
    axes.axvline(0, color="0.5", linewidth=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("slack at 250 MHz, ps")
    axes.set_ylabel("ends of paths")
    axes.legend(fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
