"""Arrivals of requests: a Poisson process, or a process with bursts."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from host.hashing import check_seed

__all__ = ["ARRIVALS", "Arrivals"]

ARRIVALS = ("poisson", "bursts")

_CYCLES = 40
"""Least expected number of bursts in a run."""

_MOST = 4_000_000
"""Most requests that the number of bursts may require; they take a few hundred megabytes."""


@dataclass(frozen=True)
class Arrivals:
    """An open-loop process of arrivals: requests do not wait for answers.

    ``poisson``: independent requests. ``bursts``: a Poisson process whose rate alternates between
    calm and burst, with exponentially distributed lengths: the Markov-modulated Poisson process of
    two states (Fischer and Meier-Hellstern, "The Markov-modulated Poisson process (MMPP) cookbook",
    Performance Evaluation 18(2), 1993). Both have the same mean rate.

    Members
    -------
    kind: one of `ARRIVALS`. seed: seed of the process.
    burst_rate: arrivals in a burst, as a multiple of the mean rate; 1 / ``burst_share`` leaves no
        arrivals for the calm.
    burst_share: share of the time in bursts. burst_us: mean length of a burst. These three have no
        effect on ``poisson``.

    Processes with the same seed differ only in the rate: at twice the rate, the same Poisson
    process runs twice as fast. The bursts keep their times.

    Raises ``ValueError`` that names field, value and bound.
    """

    kind: str = "poisson"
    seed: int = 1
    burst_rate: float = 4.0
    burst_share: float = 0.1
    burst_us: float = 1000.0

    def __post_init__(self) -> None:
        if self.kind not in ARRIVALS:
            raise ValueError(f"arrivals must be one of {', '.join(ARRIVALS)}, not {self.kind!r}")
        check_seed(self.seed)
        if not 0 < self.burst_share < 1:
            raise ValueError(f"burst_share must be above 0 and below 1, not {self.burst_share!r}")
        if not 1 <= self.burst_rate <= 1 / self.burst_share:
            raise ValueError(f"burst_rate must be between 1 and {1 / self.burst_share:g}, "
                             f"1 / burst_share, not {self.burst_rate!r}")
        if not self.burst_us > 0:
            raise ValueError(f"burst_us must be above 0, not {self.burst_us!r}")

    @property
    def peak(self) -> float:
        """Highest rate, as a multiple of the mean."""
        return 1.0 if self.kind == "poisson" else self.burst_rate

    def least(self, per_us: float) -> int:
        """Return the least requests of a run, enough to average over bursts."""
        return 0 if self.kind == "poisson" else min(
            _MOST, ceil(_CYCLES * self.burst_us / self.burst_share * per_us))

    def times(self, per_us: float, count: int) -> np.ndarray:
        """Return the arrival times of the first ``count`` requests, float64, microseconds,
        ascending.

        ``per_us``: mean requests per microsecond. A longer sequence starts with the same times.
        """
        events = _unit_events(self.seed, 1 << max(count - 1, 0).bit_length())[:count] / per_us
        if self.kind == "poisson" or not count:
            return events
        ends, passed = self._path(float(events[-1]))
        return np.interp(events, passed, ends)

    def _path(self, until: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of calms and bursts, and the progress of a process of the mean rate at
        each of them, up to at least ``until``."""
        calm_us = self.burst_us * (1 - self.burst_share) / self.burst_share
        calm_rate = max(0.0, 1 - self.burst_rate * self.burst_share) / (1 - self.burst_share)
        cycles = 2 * _CYCLES
        while True:
            lengths = np.random.default_rng([self.seed, 1]).exponential(
                1.0, (cycles, 2)) * (calm_us, self.burst_us)
            passed = np.cumsum(lengths * (calm_rate, self.burst_rate))
            if passed[-1] >= until:
                return (np.concatenate([[0.0], np.cumsum(lengths)]),
                        np.concatenate([[0.0], passed]))
            cycles *= 2


@lru_cache(maxsize=2)
def _unit_events(seed: int, count: int) -> np.ndarray:
    """Return the first events of a Poisson process of rate 1."""
    events = np.cumsum(np.random.default_rng([seed, 0]).exponential(1.0, count))
    events.setflags(write=False)
    return events
