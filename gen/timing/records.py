"""Paths, nets and classes of ends as plain JSON."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen.timing.cells import KINDS
from gen.timing.classes import EndClass
from gen.timing.loads import NetLoads
from gen.timing.paths import Path

__all__ = ["BIN_PS", "PERIODS", "class_record", "failing", "histogram", "loads_record",
           "mhz", "path_record", "pico", "slacks"]

PERIODS = {"250": 4000.0, "300": 1e6 / 300}
"""Clocks in MHz and their periods in ps, for the slack in reports. The shells have 250 MHz."""
BIN_PS = 250
"""Width in ps of a bin of the slack histogram."""


def pico(ps: float) -> float:
    """Return ``ps``, rounded to a tenth."""
    return round(float(ps), 1)


def mhz(ps: float) -> float:
    """Return the clock in MHz with period ``ps``, rounded to a tenth."""
    return round(1e6 / float(ps), 1)


def slacks(ps: float) -> dict[str, float]:
    """Return the slack of a path of ``ps`` at each of :data:`PERIODS`."""
    return {name: pico(period - ps) for name, period in PERIODS.items()}


def path_record(path: Path, *, hops: bool = True) -> dict[str, Any]:
    """Return ``path`` as a record. ``hops``: whether to include the cells."""
    record: dict[str, Any] = {
        "ps": pico(path.ps), "mhz": mhz(path.ps), "slack_ps": slacks(path.ps),
        "from": path.start, "to": path.end, "from_kind": path.start_kind,
        "to_kind": path.end_kind, "pin": path.capture, "luts": path.luts,
        "source": path.hops[-1].source}
    if hops:
        record["hops"] = [
            {**hop._asdict(), "cell_ps": pico(hop.cell_ps), "net_ps": pico(hop.net_ps)}
            for hop in path.hops]
    return record


def loads_record(net: NetLoads) -> dict[str, Any]:
    """Return ``net`` with its loads of every kind."""
    return {"net": net.name, "loads": net.total, "kinds": _kinds(net.kinds)}


def class_record(ends: EndClass) -> dict[str, Any]:
    """Return a record of a class of ends: number of ends, worst slack, and number of slow ends."""
    worst = float(ends.delays.max())
    return {"from_kind": ends.start, "to_kind": ends.end, "pin": ends.pin,
            "ends": len(ends.delays), "ps": pico(worst), "slack_ps": slacks(worst),
            "failing": failing(ends.delays)}


def failing(delays: NDArray[np.float64]) -> dict[str, int]:
    """Return the number of ends with negative slack at each of :data:`PERIODS`."""
    return {name: int((delays > period).sum()) for name, period in PERIODS.items()}


def histogram(delays: NDArray[np.float64]) -> dict[str, Any]:
    """Return the number of ends by slack at 250 MHz, in bins of :data:`BIN_PS` from ``first_ps``
    on. A bin includes its lower edge."""
    bins = np.floor((PERIODS["250"] - delays) / BIN_PS).astype(int)
    first = int(bins.min(initial=0))
    return {"first_ps": first * BIN_PS, "bin_ps": BIN_PS,
            "ends": np.bincount(bins - first).tolist()}


def _kinds(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: counts.get(kind, 0) for kind in KINDS}
