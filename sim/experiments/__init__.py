"""The evaluation: points, sweeps over them, figures, claims and the page."""

from .point import Point, measure
from .systems import SYSTEMS, canonical, parts_of

__all__ = ["SYSTEMS", "Point", "canonical", "measure", "parts_of"]
