"""Training: connects the blocks of gradients, partials and rows, step by step.

Training cannot deadlock:

- Each sender needs credit, which returns in packet headers. The host gets credit for GRADIENTS and
  RETURNED from ``acknowledge``; NICs get credit for PARTIALS from PARTIALS and STEPS. STEPS, STATES
  and WRITTEN need no credit: each has reserved space.
- A node's ``gradient_window`` must not exceed any other node's ``gradient_share``, so an owner can
  always store the partials that arrive. ``sim train`` checks this before NICs start.
- Local reduction waits for the owners. An owner's global reduction accepts a beat in every cycle,
  except during readout, which starts after all partials of the step have arrived. Rows wait for GPU
  and host, which wait for no NIC.
"""

from rtl.training.barrier import BARRIER_COUNTERS, StepBarrier, StepDone
from rtl.training.departure import TrainingDeparture
from rtl.training.passes import PASS_COUNTERS, PassOver, PassSource
from rtl.training.path import TrainingPath
from rtl.training.step_counter import STEP_COUNTER_COUNTERS, StepCounter

__all__ = [
    "BARRIER_COUNTERS", "PASS_COUNTERS", "STEP_COUNTER_COUNTERS", "PassOver", "PassSource",
    "StepBarrier", "StepCounter", "StepDone", "TrainingDeparture", "TrainingPath",
]
