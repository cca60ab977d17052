"""Comparison of batching algorithms on the same samples: savings and cost."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from host.batching.algorithms import ALGORITHMS, Algorithm
from host.batching.refresh import Refresh
from host.batching.stream import Batcher
from host.samples import Samples

__all__ = ["Tried", "compare", "compare_stream", "winner"]


def compare(samples: Samples, size: int, window: int | None = None,
            algorithms: Mapping[str, Algorithm] | None = None,
            refresh: Refresh | None = None) -> list[dict]:
    """Form mini-batches of ``samples`` with each algorithm, window by window.

    Parameters
    ----------
    size, window, refresh: see :class:`host.batching.stream.Batcher`.
    algorithms: algorithms by name; the default is all. Savings are relative to ``file``.

    Returns
    -------
    A row per algorithm:

    - ``algorithm``, ``mini_batches``.
    - ``unique_keys``: mean over all mini-batches, until windows are drained.
    - ``saved``: share of unique keys saved relative to file order on the same windows.
    - ``similarity``: mean; ``first_similarity`` and ``last_similarity``: means of the windows'
      first and last mini-batches.
    - ``us_per_mini_batch``: CPU time of the algorithm on this machine.
    """
    tried = [Tried("file", ALGORITHMS["file"]), *(
        Tried(name, algorithm, refresh) for name, algorithm in (
            ALGORITHMS if algorithms is None else algorithms).items())]
    plain, *rows = compare_stream([samples], size, window, tried)
    return [plain if row["algorithm"] == "file" else row for row in rows]


class Tried(NamedTuple):
    """A way to form mini-batches: its name, the algorithm, and the refill of its window."""

    name: str
    algorithm: Algorithm
    refresh: Refresh | None = None


def compare_stream(chunks: Iterable[Samples], size: int, window: int | None,
                   tried: Sequence[Tried],
                   progress: Callable[[int], None] = lambda done: None) -> list[dict]:
    """Return a row of `compare` for each entry of ``tried``; the first entry must be ``file``.

    All entries read the same stream concurrently. Memory holds about two windows, for any length of
    the stream.

    progress: called with the number of samples that all entries have formed.

    Raises ``ValueError`` for a stream without samples.
    """
    parts = _side_by_side(chunks, len(tried))
    ways = [_Way(each, part, size, window) for each, part in zip(tried, parts)]
    left = list(ways)
    while left:
        # The slowest entry first, so that the entries stay close together.
        way = min(left, key=lambda way: way.samples)
        if not way.step():
            left.remove(way)
        elif way is ways[0]:
            progress(way.samples)
    rows = [way.row() for way in ways]
    for row in rows[1:]:
        row["saved"] = _saved(row["unique_keys"], rows[0]["unique_keys"])
    return rows


def winner(rows: Sequence[dict]) -> str:
    """Return the algorithm that saves most unique keys; in a tie, the first."""
    return max(rows, key=lambda row: row["saved"])["algorithm"]


def _side_by_side(chunks: Iterable[Samples], count: int) -> list[Iterator[Samples]]:
    """Return ``count`` iterators over the same chunks.

    A chunk is held until all iterators have it; :func:`itertools.tee` would hold up to 57 more.
    """
    source = iter(chunks)
    waiting: list[deque[Samples]] = [deque() for _ in range(count)]

    def part(own: deque[Samples]) -> Iterator[Samples]:
        while True:
            if not own:
                chunk = next(source, None)
                if chunk is None:
                    return
                for each in waiting:
                    each.append(chunk)
            yield own.popleft()

    return [part(own) for own in waiting]


class _Way:
    """An entry of ``tried`` at its position in the stream.

    Members: ``samples``: number of samples formed into mini-batches.
    """

    def __init__(self, tried: Tried, chunks: Iterable[Samples], size: int, window: int | None):
        self._name = tried.name
        self._batcher = Batcher(tried.algorithm, size, window, tried.refresh)
        self._batches = self._batcher.form(chunks)
        self._formed: list[tuple[bool, int, float]] = []
        self.samples = 0

    def step(self) -> bool:
        """Form a mini-batch; return False at the end of the stream."""
        batch = next(self._batches, None)
        if batch is None:
            return False
        self._formed.append((batch.fresh, batch.unique, batch.similarity))
        self.samples += len(batch.samples)
        return True

    def row(self) -> dict:
        if not self._formed:
            raise ValueError("samples must be at least 1, not 0")
        fresh, unique, similarities = map(np.array, zip(*self._formed))
        last = np.append(fresh[1:], True)
        return {"algorithm": self._name, "mini_batches": len(unique),
                "unique_keys": float(unique.mean()), "saved": 0.0,
                "similarity": float(similarities.mean()),
                "first_similarity": float(similarities[fresh].mean()),
                "last_similarity": float(similarities[last].mean()),
                "us_per_mini_batch": 1e6 * self._batcher.seconds / self._batcher.formed}


def _saved(unique: float, plain: float) -> float:
    return 1 - unique / plain if plain else 0.0
