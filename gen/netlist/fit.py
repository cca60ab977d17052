"""Check that a design fits the die of its card."""

from collections.abc import Iterable
from typing import Any

from gen.netlist.ram_cost import ram_cost

__all__ = ["SLR", "oversize_warnings"]

SLR = {"lut": 432_000, "bram36": 672, "uram": 320, "dsp": 3_072}
"""Resources of one super logic region of an Alveo U280."""

_NAMES = {"lut": "LUTs", "bram36": "BRAM36", "uram": "UltraRAMs", "dsp": "DSPs"}


def oversize_warnings(memories: Iterable[dict[str, Any]],
                      report: dict[str, Any] | None) -> list[str]:
    """Return a warning for each kind of resource that exceeds an SLR, with both numbers and the
    share.

    memories: memories with ``width``, ``depth`` and ``style``.
    report: report of :func:`gen.netlist.report.report_resources`. Without it, only memories are
        checked, because their sizes are known.
    """
    if report is not None:
        used = report["total"]
    else:
        costs = [ram_cost(m["width"], m["depth"], m["style"]) for m in memories]
        used = {"bram36": sum(cost.bram36 for cost in costs),
                "uram": sum(cost.uram for cost in costs), "lut": sum(cost.lut for cost in costs)}
    taker = "the design uses" if report is not None else "the memories alone use"
    return [f"{taker} {used[kind]:,.10g} {_NAMES[kind]}, {100 * used[kind] / there:,.1f}% of the "
            f"{there:,} of an SLR of the U280"
            for kind, there in SLR.items() if used.get(kind, 0) > there]
