"""Entries of a plot: a point, and where it stands."""

from dataclasses import dataclass

from sim.evaluation.point import Point

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
    seeds: that it is measured with, none for that of the point alone.
    """

    panel: str
    series: str
    x: float | str
    system: str
    point: Point
    bases: tuple[tuple[str, Point], ...] = ()
    drawn: bool = True
    seeds: tuple[int, ...] = ()

    @property
    def points(self) -> list[Point]:
        """Every point that it needs."""
        own = [self.point, *(base for _, base in self.bases)]
        return [point.changed(seed=seed) for seed in self.seeds for point in own] or own
