"""When requests arrive: a Poisson process, or one with bursts."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from host.hashing import check_seed

__all__ = ["ARRIVALS", "Arrivals"]

ARRIVALS = ("poisson", "bursts")

_CYCLES = 40
"""Bursts that a run has at least, in the mean."""

_MOST = 4_000_000
"""Requests that no number of bursts asks for more of: they take a few hundred megabytes."""


@dataclass(frozen=True)
class Arrivals:
    """A process of arrivals, open-loop: nobody waits for an answer before sending more.

    ``poisson``: independent requests. ``bursts``: a Poisson process whose rate jumps between a calm
    and a burst, each of a random, exponentially distributed length, the Markov-modulated Poisson
    process of two states (Fischer and Meier-Hellstern, "The Markov-modulated Poisson process (MMPP)
    cookbook", Performance Evaluation 18(2), 1993). Its mean rate is that of the other.

    Members
    -------
    kind: one of `ARRIVALS`. seed: of the process.
    burst_rate: arrivals in a burst, as a multiple of the mean rate. burst_share: of the time that
        is in bursts. burst_us: mean length of a burst. All three are choices, and of no effect on
        ``poisson``. A ``burst_rate`` of 1 / ``burst_share`` leaves nothing for the calm: on and
        off.

    Processes of one seed differ by the rate alone: at twice the rate, the same Poisson process runs
    twice as fast. The bursts keep their times.

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
        """The highest rate, as a multiple of the mean."""
        return 1.0 if self.kind == "poisson" else self.burst_rate

    def least(self, per_us: float) -> int:
        """Return how many requests a run must have, so that chance bursts do not decide it."""
        return 0 if self.kind == "poisson" else min(
            _MOST, ceil(_CYCLES * self.burst_us / self.burst_share * per_us))

    def times(self, per_us: float, count: int) -> np.ndarray:
        """Return when the first ``count`` requests arrive, float64, microseconds, ascending.

        ``per_us``: requests a microsecond, in the mean. The first of a longer sequence are the
        same.
        """
        events = _unit_events(self.seed, 1 << max(count - 1, 0).bit_length())[:count] / per_us
        if self.kind == "poisson" or not count:
            return events
        ends, passed = self._path(float(events[-1]))
        return np.interp(events, passed, ends)

    def _path(self, until: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of calms and bursts, and how far a process of the mean rate has come by
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
