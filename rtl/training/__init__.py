"""Training: connects the blocks of gradients, partials and rows, step by step."""

from rtl.training.barrier import BARRIER_COUNTERS, StepBarrier, StepDone
from rtl.training.departure import TrainingDeparture
from rtl.training.passes import PASS_COUNTERS, PassOver, PassSource
from rtl.training.path import TrainingPath
from rtl.training.step_counter import STEP_COUNTER_COUNTERS, StepCounter

__all__ = [
    "BARRIER_COUNTERS", "PASS_COUNTERS", "STEP_COUNTER_COUNTERS", "PassOver", "PassSource",
    "StepBarrier", "StepCounter", "StepDone", "TrainingDeparture", "TrainingPath",
]
