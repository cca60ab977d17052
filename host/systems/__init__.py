"""Systems as graphs of stages over named resources, and the schedule that they follow."""

from .breakdown import PHASES, Breakdown, breakdown
from .schedule import Schedule, schedule
from .stage import Stage, Step

__all__ = ["PHASES", "Breakdown", "Schedule", "Stage", "Step", "breakdown", "schedule"]
