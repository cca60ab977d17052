"""Choice of a system's mini-batch and timeout at a load, and its highest load within a p99."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from math import inf, sqrt

from sim.serving.arrivals import Arrivals
from sim.serving.batcher import Batcher
from sim.serving.measured import WINDOW
from sim.serving.queue import REQUESTS, Load, Served, serve_at
from sim.serving.system import System

__all__ = ["TIMEOUTS_US", "Choice", "Search"]

TIMEOUTS_US = tuple(round(10 ** (tenths / 10), 2) for tenths in range(7, 44))
"""Timeouts that a system chooses from: 5 us to 20 ms, ten per decade."""

_PATIENT = 2.0
"""Longest timeout, as a multiple of the mean time to fill a mini-batch; it hardly ever expires."""

_COMPANY = 0.01
"""Least expected number of further requests within a timeout that can change the p99."""

_SPREAD = 6.0
"""Most requests of a timeout: the mean number plus this many standard deviations."""

_SURE = 0.9
"""Lower bound of the p99, as a share of the longest wait for a mini-batch."""

_LOOK = 0.2
"""Share of the requests of a trial."""

_TRIES = 3
"""Best trials that are run in full; later ones only if the first are not good enough."""

_FAR = 1.1
"""A trial above a bound by this factor needs no full run."""

_CLOSE = 1.03
"""The search between a served and an unserved load ends at this ratio."""


@dataclass(frozen=True)
class Choice:
    """A system's choice at a load, and its result.

    Members: ``qps``; ``batcher``; ``served``.
    """

    qps: float
    batcher: Batcher
    served: Served


class Search:
    """Search of a system's mini-batch and timeout.

    Parameters: ``system``; ``arrivals``; ``requests``, measured requests of each run;
    ``candidates``, samples of a request, see :class:`sim.serving.queue.Load`.
    """

    def __init__(self, system: System, arrivals: Arrivals, requests: int = REQUESTS,
                 candidates: tuple[int, ...] = (1,)):
        self._system, self._arrivals = system, arrivals
        self._requests, self._candidates = requests, candidates
        self._known: dict[tuple[float, Batcher, float], Served] = {}

    def best(self, qps: float) -> Choice | None:
        """Return the choice with the least p99, among full runs of the best two trials; None if all
        are saturated."""
        for trials in self._rounds(qps):
            found: list[Choice] = []
            for _, batcher in trials:
                served = self._serve(qps, batcher)
                if not served.saturated:
                    found.append(Choice(qps, batcher, served))
                if len(found) == 2:
                    break
            if found:
                return min(found, key=lambda choice: choice.served.p99_us or inf)
        return None

    def within(self, qps: float, slo_us: float) -> Choice | None:
        """Return a choice whose p99 is at most ``slo_us``; None if there is none."""
        for trials in self._rounds(qps, slo_us):
            for p99, batcher in trials:
                if p99 > _FAR * slo_us:
                    break
                served = self._serve(qps, batcher)
                if served.p99_us is not None and served.p99_us <= slo_us:
                    return Choice(qps, batcher, served)
        return None

    def most_within(self, slo_us: float, served: float, over: float) -> Choice | None:
        """Return the highest load within a p99, between a served load and a higher one that is not
        served; None if the first is not served.

        By bisection, to within 3 %.
        """
        found = self.within(served, slo_us)
        while found is not None and over > _CLOSE * found.qps:
            middle = sqrt(found.qps * over)
            between = self.within(middle, slo_us)
            if between is None:
                over = middle
            else:
                found = between
        return found

    def _rounds(self, qps: float, most_us: float = inf) -> Iterator[list[tuple[float, Batcher]]]:
        """Yield the best trials, then the best trials of other mini-batch sizes: close to the
        capacity, the best trials may fail in a full run."""
        seen: set[tuple[int, int]] = set()
        while trials := self._trials(qps, most_us, seen)[:_TRIES]:
            yield trials
            seen |= {(batcher.mini_batch, batcher.window) for _, batcher in trials}

    def _trials(self, qps: float, most_us: float, without: Set[tuple[int, int]]
                ) -> list[tuple[float, Batcher]]:
        """Return p99 and batcher of trials that are not saturated, the least p99 first.

        Batchers whose bound exceeds the least p99 or ``most_us`` are skipped, and sizes and windows
        of ``without``.
        """
        bounds = sorted(((self._bound(batcher, qps), batcher) for batcher in self._batchers(qps)
                         if (batcher.mini_batch, batcher.window) not in without),
                        key=lambda each: (each[0], each[1].most, each[1].timeout_us))
        if self._rate(qps) / 1e6 >= self._system.capacity():
            return []
        found, least = [], most_us
        for bound, batcher in bounds:
            if bound > least:
                break
            p99 = self._serve(qps, batcher, _LOOK).p99_us
            if p99 is not None:
                found.append((p99, batcher))
                least = min(least, p99)
        return sorted(found, key=lambda each: each[0])

    def _batchers(self, qps: float) -> Iterator[Batcher]:
        rate = self._rate(qps)
        for sizes, window in ((self._system.sizes, 1), (self._system.graph, WINDOW)):
            for size in sizes:
                if size * window == 1:
                    yield Batcher(1)
                    continue
                fill = _fill_us(size * window, rate)
                for timeout in _up_to(TIMEOUTS_US, _PATIENT * fill):
                    if window > 1 and timeout < fill:  # no window would be full
                        continue
                    others = self._arrivals.peak * qps / 1e6 * timeout
                    # Skip a size if the timeout never fills a smaller one: both are equivalent.
                    smaller = max((each for each in sizes if each < size), default=0) * window
                    most = (1 + others + _SPREAD * sqrt(others)) * max(self._candidates)
                    if others >= _COMPANY and smaller < most:
                        yield Batcher(size, timeout, window)

    def _bound(self, batcher: Batcher, qps: float) -> float:
        fill = _fill_us(batcher.most, self._rate(qps))
        wait = min(batcher.timeout_us, fill) if batcher.most > 1 else 0.0
        return _SURE * wait + self._system.least_us(batcher.mini_batch)

    def _serve(self, qps: float, batcher: Batcher, share: float = 1.0) -> Served:
        key = qps, batcher, share
        if key not in self._known:
            self._known[key] = serve_at(self._system, batcher, self._load(qps), share)
        return self._known[key]

    def _rate(self, qps: float) -> float:
        """Return the samples per second at a load."""
        return self._load(qps).samples * qps

    def _load(self, qps: float) -> Load:
        return Load(self._arrivals, qps, self._requests, self._candidates)


def _fill_us(samples: int, rate: float) -> float:
    """Return the mean time from the first to the last of so many samples, ``rate`` per second."""
    return (samples - 1) / rate * 1e6


def _up_to(values: Sequence[float], limit: float) -> Sequence[float]:
    """Return the ascending values below ``limit`` and the next value."""
    return values[:sum(value < limit for value in values) + 1]
