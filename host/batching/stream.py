"""Mini-batches from a stream of samples, window by window."""

from collections.abc import Iterable, Iterator
from time import thread_time

import numpy as np

from host.batching.algorithms import WINDOW_BATCHES, Algorithm
from host.batching.baselines import split_runs
from host.batching.mini_batch import MiniBatch
from host.batching.refresh import Refresh
from host.samples import Samples, Supply, concatenate

__all__ = ["Batcher"]


class Batcher:
    """Forms mini-batches from a stream of samples.

    Parameters
    ----------
    algorithm: selects the samples of a mini-batch from a window.
    size: samples of a mini-batch.
    window: samples of a window; the default is 16 mini-batches.
    refresh: refill policy of the window.

    Members
    -------
    formed: number of mini-batches so far.
    seconds: CPU time of the algorithm.

    Raises
    ------
    ValueError
        ``size`` is below 1, or ``window`` below ``size``.
    """

    def __init__(self, algorithm: Algorithm, size: int, window: int | None = None,
                 refresh: Refresh | None = None):
        if size < 1:
            raise ValueError(f"mini_batch must be at least 1, not {size!r}")
        window = WINDOW_BATCHES * size if window is None else window
        if window < size:
            raise ValueError(f"window must be at least the {size} samples of a mini-batch, "
                             f"not {window!r}")
        self._algorithm, self._size, self._window = algorithm, size, window
        self._refresh = refresh or Refresh()
        wait = self._refresh.wait
        self._wait = 2 * -(-window // size) if wait is None else wait
        self.formed = 0
        self.seconds = 0.0

    def form(self, chunks: Iterable[Samples], first: int = 0) -> Iterator[MiniBatch]:
        """Yield mini-batches of a stream's samples, each sample in exactly one.

        The last mini-batch of a drained window, and the last window, may be short.

        first: number of the first sample.
        """
        supply = Supply(chunks, first)
        while len(window := supply.take(self._window)):
            yield from self._until_drained(window, supply)

    def _until_drained(self, pool: Samples, supply: Supply) -> Iterator[MiniBatch]:
        """Yield mini-batches from a newly loaded window, ``pool``, until it is empty."""
        numbers = np.arange(supply.next - len(pool), supply.next)
        arrived = np.zeros(len(pool), np.int64)  # mini-batches formed before it was loaded
        left = np.ones(len(pool), bool)
        sliding, first, turn = self._refresh.sliding, None, 0
        choices = self._algorithm(pool, self._size)
        while (chosen := self._next(choices)) is not None:
            batch = _mini_batch(pool, numbers, chosen, first)
            first = first or batch
            yield batch
            left[chosen] = False
            turn += 1
            low = (self._refresh.downgrade > 0 and batch.downgrade is not None
                   and batch.downgrade < self._refresh.downgrade)
            if low and not sliding:
                choices = split_runs(np.flatnonzero(left), self._size)
                continue
            kept = np.flatnonzero(left)
            sliding = sliding and not low and not (
                len(kept) and turn - arrived[kept[0]] >= self._wait)
            more = supply.take(self._window - len(kept)) if sliding else pool.slice(0, 0)
            if len(more):
                pool = concatenate([pool.take(kept), more])
                numbers = np.append(numbers[kept], np.arange(supply.next - len(more), supply.next))
                arrived = np.append(arrived[kept], np.full(len(more), turn))
                left = np.ones(len(pool), bool)
                choices = self._algorithm(pool, self._size)

    def _next(self, choices: Iterator[np.ndarray]) -> np.ndarray | None:
        began = thread_time()
        chosen = next(choices, None)
        self.seconds += thread_time() - began
        self.formed += chosen is not None
        return chosen


def _mini_batch(pool: Samples, numbers: np.ndarray, chosen: np.ndarray,
                first: MiniBatch | None) -> MiniBatch:
    """Return the mini-batch of the samples of ``pool`` at ``chosen``.

    first: the window's first mini-batch, None for itself.
    """
    start, stop = int(chosen[0]), int(chosen[0]) + len(chosen)
    run = np.array_equal(chosen, np.arange(start, stop))
    samples = pool.slice(start, stop) if run else pool.take(chosen)
    return MiniBatch(samples, numbers[chosen], first is None, first)
