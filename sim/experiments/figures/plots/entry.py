"""Entries of a plot: a point, and its position."""

from dataclasses import dataclass

from sim.evaluation.point import Point

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """A point of a plot.

    Members
    -------
    panel: column of the picture, a data set. series: line, or group of bars. x: position in it.
    system: name in the CSV file, including a cache size.
    point: measured point. bases: points of baselines by name, for speedups.
    drawn: whether it is in the picture; the CSV file always contains it.
    seeds: seeds to measure; empty means the point's own seed.
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
