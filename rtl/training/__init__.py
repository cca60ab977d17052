"""Training: what joins the blocks of gradients, of partials and of rows, step by step."""

from .barrier import BARRIER_COUNTERS, StepBarrier, StepDone
from .departure import TrainingDeparture
from .passes import PASS_COUNTERS, PassOver, PassSource
from .path import TrainingPath
from .step_counter import STEP_COUNTER_COUNTERS, StepCounter

__all__ = [
    "BARRIER_COUNTERS", "PASS_COUNTERS", "STEP_COUNTER_COUNTERS", "PassOver", "PassSource",
    "StepBarrier", "StepCounter", "StepDone", "TrainingDeparture", "TrainingPath",
]
