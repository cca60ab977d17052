"""Values of a figure or table as rows, and as a CSV file."""

from dataclasses import dataclass

from sim.evaluation.point import Point
from sim.experiments.figures.estimate import Estimate

__all__ = ["COLUMNS", "Row"]

COLUMNS = ("dataset", "nodes", "mini_batch", "profile", "fidelity", "system", "metric", "value",
           "low", "high", "unit")
"""Columns of the CSV files: members of :class:`Row`."""


@dataclass(frozen=True)
class Row:
    """One value. ``low`` and ``high`` are the ends of its range, or None."""

    dataset: str
    nodes: int
    mini_batch: int
    profile: str
    fidelity: str
    system: str
    metric: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, point: Point, system: str, metric: str, found: Estimate | None,
           unit: str) -> "Row":
        """Return the row of a point's metric; ``found``: its estimate over seeds."""
        return cls.at(point, system, metric, found and found.value, unit)

    @classmethod
    def at(cls, point: Point, system: str, metric: str, value: float | None, unit: str) -> "Row":
        """Return the row of a value at a point."""
        return cls(point.workload.name, point.cluster.nodes, point.workload.samples,
                   point.cluster.software, point.system.fidelity, system, metric, value, unit)
