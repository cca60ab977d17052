"""The evaluation: points, sweeps over them, figures, claims and the page."""

from sim.evaluation.measure import measure
from sim.evaluation.point import Point
from sim.evaluation.systems import SYSTEMS, canonical

__all__ = ["SYSTEMS", "Point", "canonical", "measure"]
