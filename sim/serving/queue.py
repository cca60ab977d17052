"""A queue in front of a system: how long requests take at a load, or that it cannot keep up."""

from dataclasses import dataclass

import numpy as np

from sim.serving.arrivals import Arrivals
from sim.serving.batcher import Batcher, Formed, form
from sim.serving.system import System

__all__ = ["REQUESTS", "Load", "Served", "serve_at"]

REQUESTS = 20_000
"""Requests that count: 20 of them take longer than the p99.9."""

_PER_MINI_BATCH = 20
"""Of so many requests that are asked for, one mini-batch at least: large ones, too, are many."""

_WARMUP = 0.1
"""Requests before those that count, as a share of them."""

_GROWTH = 0.01
"""Microseconds by which latencies may grow a microsecond: more is a queue that gets longer."""


@dataclass(frozen=True)
class Load:
    """How requests come.

    Members: ``arrivals``; ``qps``, requests a second in the mean; ``requests`` that count, at
    least: mini-batches are at least a twentieth of them.

    Raises ``ValueError`` that names field, value and bound.
    """

    arrivals: Arrivals
    qps: float
    requests: int = REQUESTS

    def __post_init__(self) -> None:
        if not 0 < self.qps < float("inf"):
            raise ValueError(f"qps must be above 0 and finite, not {self.qps!r}")
        if self.requests < 1:
            raise ValueError(f"requests must be at least 1, not {self.requests!r}")


@dataclass(frozen=True)
class Served:
    """What became of requests at a load.

    Members
    -------
    saturated: whether the system cannot keep up; there are then no latencies.
    p50_us, p99_us, p99_9_us: from a request's arrival to its prediction. None where saturated.
    utilisation: time that the mini-batches take one right after the other, as a share of the time
        in which they come. At 1 and above, the system is saturated.
    mini_batch: requests of one, in the mean. requests: that count.
    per_sample: what a request costs, see :data:`sim.serving.measured.COSTS`; padding included. None
        where saturated.
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

    The first requests warm the queue up and do not count; more come after the last that counts.
    ``share``: of the requests and mini-batches of a whole run, for a first look.

    A queue that grows has no latency. It grows where mini-batches come faster than the system takes
    them one right after the other; and, what this might overlook, where latencies rise from quarter
    to quarter of the run: to twice as much, and by more than 1 % of the time passed.
    """
    per_us = load.qps / 1e6
    count = int(max(share * load.requests * max(1, batcher.mini_batch / _PER_MINI_BATCH),
                    share * load.arrivals.least(per_us), 1))
    first = int(_WARMUP * count) + batcher.most
    times = load.arrivals.times(per_us, first + count + batcher.most)
    formed = form(times, batcher, load.arrivals.seed)
    utilisation = _utilisation(system, formed)
    found = {"utilisation": utilisation, "requests": count,
             "mini_batch": len(times) / len(formed.size)}
    if utilisation >= 1:
        return Served(True, **found)
    work = system.run(formed, load.arrivals.seed)
    counted = slice(first, first + count)
    waits = (work.finished[formed.of] - times)[counted]
    if _grows(times[counted], waits):
        return Served(True, **found)
    p50, p99, p99_9 = np.percentile(waits, (50, 99, 99.9)).tolist()
    return Served(False, **found, p50_us=p50, p99_us=p99, p99_9_us=p99_9,
                  per_sample={name: cost / len(times) for name, cost in work.costs.items()})


def _utilisation(system: System, formed: Formed) -> float:
    """Return the time that mini-batches take as a share of that in which they became ready."""
    passed = float(formed.ready[-1] - formed.ready[0])
    if not passed:
        return 0.0
    # As many mini-batches as there are times between two of them.
    return system.needed_us(formed) * (1 - 1 / len(formed.ready)) / passed


def _grows(times: np.ndarray, waits: np.ndarray) -> bool:
    """Return whether latencies rise from the first quarter of a run to the last."""
    quarter = len(times) // 4
    if not quarter:
        return False
    (begun, before), (ended, after) = ((float(times[part].mean()), float(waits[part].mean()))
                                       for part in (slice(quarter), slice(-quarter, None)))
    return after > 2 * before and after - before > _GROWTH * (ended - begun)
