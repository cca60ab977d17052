"""Training: what joins the blocks of gradients, of partials and of rows, step by step."""

from .barrier import BARRIER_COUNTERS, StepBarrier, StepDone

__all__ = ["BARRIER_COUNTERS", "StepBarrier", "StepDone"]
