"""The event queue of a host."""

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import count

__all__ = ["EventQueue", "Rank"]


class Rank(IntEnum):
    """Order of events at the same time: steps handed out by the front end, consequences of earlier
    events, packets. Quantum boundaries decide when events of the first and last kind are queued; a
    fixed rank makes the outcome independent of the boundaries."""

    HANDED_OUT = 0
    FOLLOWS = 1
    PACKET = 2


class EventQueue:
    """Actions scheduled at cycles, which may be fractions. Ties are broken by `Rank`, then by order
    of insertion."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Rank, int, Callable[[float], None]]] = []
        self._order = count()

    def at(self, time: float, action: Callable[[float], None], rank: Rank = Rank.FOLLOWS) -> None:
        """Schedule ``action(time)`` at ``time``."""
        heapq.heappush(self._heap, (time, rank, next(self._order), action))

    def until(self, horizon: float) -> Iterator[tuple[float, Callable[[float], None]]]:
        """Yield every event before ``horizon`` in order, including those added meanwhile."""
        while self._heap and self._heap[0][0] < horizon:
            time, _, _, action = heapq.heappop(self._heap)
            yield time, action

    @property
    def next_time(self) -> float | None:
        """Time of the first event, None if there is none."""
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)
