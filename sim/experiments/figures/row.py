"""Values of a figure or table as rows of its CSV file."""

from sim.evaluation.point import Point
from sim.experiments.figures.estimate import Estimate
from sim.page.rows import Row

__all__ = ["cluster_of", "row_at", "row_of"]


def cluster_of(nodes: int) -> str:
    """Return the cluster of a figure in words: its number of nodes."""
    return f"{nodes} node{'s' * (nodes != 1)}"


def row_of(point: Point, system: str, metric: str, found: Estimate | None, unit: str) -> Row:
    """Return the row of a point's metric; ``found``: its estimate over seeds."""
    return row_at(point, system, metric, found and found.value, unit)


def row_at(point: Point, system: str, metric: str, value: float | None, unit: str) -> Row:
    """Return the row of a value at a point."""
    return Row(point.workload.name, cluster_of(point.cluster.nodes), point.workload.samples,
               point.cluster.software, point.system.fidelity, system, metric, value, unit)
