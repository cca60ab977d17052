"""Times of actions: the median of repeats."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures actions.

    An action that is short is done several times in a row between two looks at the clock, so that
    the clock's own time does not count. A first time, which is not counted, warms caches up.

    Parameters
    ----------
    repeats: measurements, whose median it is. shortest_us: of a measurement.
    wait: done before the clock is looked at, such as waiting for a GPU; its own time counts.
    clock: seconds.
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
        """Return the microseconds of one time of ``action``, waited for after the last of a row.

        ``times`` in a row; by default as many as the shortest measurement takes.
        """
        first = self._row(action, 1)  # warms up
        if times is None:
            first = self._row(action, 1)
            times = max(1, min(10_000, int(self.shortest_us / max(first, 0.1))))
        return median(self._row(action, times) for _ in range(self.repeats)) / times

    def us_once(self, action: Callable[[], object]) -> float:
        """Return the microseconds of ``action`` done once, neither warmed up nor waited for."""
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
