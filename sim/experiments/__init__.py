"""The evaluation: points, sweeps over them, figures, claims and the page."""

from sim.experiments.points.measure import measure
from sim.experiments.points.point import Point
from sim.experiments.points.systems import SYSTEMS, canonical, parts_of

__all__ = ["SYSTEMS", "Point", "canonical", "measure", "parts_of"]
