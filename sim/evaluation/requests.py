"""Latency of single requests: from arrival, through the window, to the prediction."""

from collections.abc import Sequence

import numpy as np

from host.systems import Step, schedule
from sim.evaluation.trace import Trace, arrivals_of

__all__ = ["LOAD", "request_us"]

LOAD = 0.7
"""Arrival rate of requests, as a share of bl-paper's capacity."""


def request_us(trace: Trace, steps: Sequence[Step], in_flight: int, capacity: float,
               seed: int) -> dict[str, float]:
    """Return median and 99th percentile over the samples of the measured mini-batches.

    Samples arrive as a Poisson process at `LOAD` of ``capacity``, samples a microsecond. A
    mini-batch is ready when the last sample of its window has arrived; in file order, when its own
    last sample has.
    """
    arrived = arrivals_of(trace, LOAD * capacity, seed)
    ready = np.maximum.accumulate([arrived[trace.ready(batch)] for batch in trace.measured])
    done = schedule(steps, in_flight, ready.tolist()).finished
    waits = np.concatenate([end - arrived[batch.numbers]
                            for end, batch in zip(done, trace.measured)])
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99))}
