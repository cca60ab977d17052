"""Entries of a plot: a point, and where it stands."""

from dataclasses import dataclass

from sim.experiments.points.point import Point

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """A point of a plot.

    Members
    -------
    panel: column of the picture, a data set. series: line, or group of bars. x: place in it.
    system: name in the CSV file, the size of a cache included.
    point: measured. bases: the points of baselines by name, for metrics that are speedups.
    drawn: whether it is in the picture; it is in the CSV file anyway.
    """

    panel: str
    series: str
    x: float | str
    system: str
    point: Point
    bases: tuple[tuple[str, Point], ...] = ()
    drawn: bool = True
