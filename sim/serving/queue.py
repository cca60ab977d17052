"""Queue in front of a system: latency of requests at a load, or saturation."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from sim.serving.arrivals import Arrivals
from sim.serving.batcher import Batcher, Formed, form
from sim.serving.system import System

__all__ = ["REQUESTS", "Load", "Served", "serve_at"]

REQUESTS = 20_000
"""Measured requests: 20 of them take longer than the p99.9."""

_PER_MINI_BATCH = 20
"""A run has at least one mini-batch per this number of requests, for large mini-batches too."""

_WARMUP = 0.1
"""Warm-up requests, as a share of the measured ones."""

_GROWTH = 0.01
"""Growth of the latency, microseconds per microsecond, above which the queue counts as growing."""


@dataclass(frozen=True)
class Load:
    """Arrivals of a run.

    Members
    -------
    arrivals: process of arrivals. qps: mean requests per second.
    requests: least measured requests; mini-batches are at least a twentieth of them.
    candidates: samples of a request, drawn with equal probability. All samples of a request arrive
        together, and its latency ends with the last of them.

    Raises ``ValueError`` that names field, value and bound.
    """

    arrivals: Arrivals
    qps: float
    requests: int = REQUESTS
    candidates: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if not 0 < self.qps < float("inf"):
            raise ValueError(f"qps must be above 0 and finite, not {self.qps!r}")
        if self.requests < 1:
            raise ValueError(f"requests must be at least 1, not {self.requests!r}")
        if min(self.candidates, default=0) < 1:
            raise ValueError(f"candidates must be at least 1, not {self.candidates!r}")

    @property
    def samples(self) -> float:
        """Mean samples of a request."""
        return sum(self.candidates) / len(self.candidates)

    def sizes(self, count: int) -> np.ndarray:
        """Return the samples of the first ``count`` requests."""
        return np.random.default_rng([self.arrivals.seed, 4]).choice(self.candidates, count)


@dataclass(frozen=True)
class Served:
    """Result of requests at a load.

    Members
    -------
    saturated: whether the system cannot keep up; there are no latencies then.
    p50_us, p99_us, p99_9_us: from a request's arrival to its prediction. None if saturated.
    utilisation: time of the mini-batches in sequence, as a share of the time in which they arrive.
        The system is saturated at 1 and above.
    mini_batch: mean samples of a mini-batch. requests: measured requests.
    per_sample: cost of a sample, padding included, see :data:`sim.serving.measured.COSTS`. None if
        saturated.
    """

    saturated: bool
    utilisation: float
    mini_batch: float
    requests: int
    p50_us: float | None = None
    p99_us: float | None = None
    p99_9_us: float | None = None
    per_sample: dict[str, float] | None = None


def serve_at(system: System, batcher: Batcher, load: Load, share: float = 1.0) -> Served:
    """Serve requests and return their latencies.

    The first requests warm up the queue and do not count; more arrive after the last measured one.
    ``share``: share of the requests and mini-batches of a whole run, for trials.

    A growing queue has no latency. It grows if mini-batches arrive faster than the system processes
    them in sequence. It also grows if latencies rise from quarter to quarter of the run: to twice
    the value, and by more than 1 % of the elapsed time.
    """
    per_us = load.qps / 1e6
    mini_batch, most = (size / load.samples for size in (batcher.mini_batch, batcher.most))
    count = int(max(share * load.requests * max(1, mini_batch / _PER_MINI_BATCH),
                    share * load.arrivals.least(per_us), 1))
    first = int(_WARMUP * count) + ceil(most)
    arrived = load.arrivals.times(per_us, first + count + ceil(most))
    sizes = load.sizes(len(arrived))
    times = np.repeat(arrived, sizes)
    formed = form(times, batcher, load.arrivals.seed)
    utilisation = _utilisation(system, formed)
    found = {"utilisation": utilisation, "requests": count,
             "mini_batch": len(times) / len(formed.size)}
    if utilisation >= 1:
        return Served(True, **found)
    work = system.run(formed, load.arrivals.seed)
    counted = slice(first, first + count)
    ends = np.maximum.reduceat(work.finished[formed.of], np.cumsum(sizes) - sizes)
    waits = (ends - arrived)[counted]
    if _grows(arrived[counted], waits):
        return Served(True, **found)
    p50, p99, p99_9 = np.percentile(waits, (50, 99, 99.9)).tolist()
    return Served(False, **found, p50_us=p50, p99_us=p99, p99_9_us=p99_9,
                  per_sample={name: cost / len(times) for name, cost in work.costs.items()})


def _utilisation(system: System, formed: Formed) -> float:
    """Return the time of the mini-batches as a share of the time in which they became ready."""
    passed = float(formed.ready[-1] - formed.ready[0])
    if not passed:
        return 0.0
    # The number of mini-batches equals the number of intervals between them.
    return system.needed_us(formed) * (1 - 1 / len(formed.ready)) / passed


def _grows(times: np.ndarray, waits: np.ndarray) -> bool:
    """Return whether latencies rise from the first quarter of a run to the last."""
    quarter = len(times) // 4
    if not quarter:
        return False
    (begun, before), (ended, after) = ((float(times[part].mean()), float(waits[part].mean()))
                                       for part in (slice(quarter), slice(-quarter, None)))
    return after > 2 * before and after - before > _GROWTH * (ended - begun)
