"""A stopwatch that takes the median of repeated measurements."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures the time of actions.

    A short action is repeated between two clock readings, so that reading the clock does not count.
    An uncounted first run warms up the caches.

    Parameters
    ----------
    repeats: measurements; their median is the result.
    shortest_us: minimum duration of a measurement.
    wait: called before the clock is read, for example to wait for a GPU; its own time counts.
    clock: returns seconds.
    """

    def __init__(self, repeats: int = 7, shortest_us: float = 2000.0,
                 wait: Callable[[], object] = lambda: None,
                 clock: Callable[[], float] = perf_counter):
        if repeats < 1:
            raise ValueError(f"repeats must be at least 1, not {repeats!r}")
        self.repeats = repeats
        self.shortest_us = shortest_us
        self._wait = wait
        self._clock = clock

    def us(self, action: Callable[[], object], times: int | None = None) -> float:
        """Return the microseconds of one ``action``, with one wait at the end of each series.

        ``times``: repetitions in a series; by default enough for the shortest measurement.
        """
        first = self._row(action, 1)  # warms up
        if times is None:
            first = self._row(action, 1)
            times = max(1, min(10_000, int(self.shortest_us / max(first, 0.1))))
        return median(self.all_us(action, times, warm=False))

    def all_us(self, action: Callable[[], object], times: int = 1,
               warm: bool = True) -> list[float]:
        """Return the microseconds of one ``action``, for each series of ``times`` actions."""
        if warm:
            self._row(action, 1)
        return [self._row(action, times) / times for _ in range(self.repeats)]

    def us_once(self, action: Callable[[], object]) -> float:
        """Return the microseconds of a single ``action``, without warm-up and without a wait."""
        start = self._clock()
        action()
        return (self._clock() - start) * 1e6

    def _row(self, action: Callable[[], object], times: int) -> float:
        self._wait()
        start = self._clock()
        for _ in range(times):
            action()
        self._wait()
        return (self._clock() - start) * 1e6
