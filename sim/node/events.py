"""An event queue: what happens on a host, in time order."""

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import count

__all__ = ["EventQueue", "Rank"]


class Rank(IntEnum):
    """What comes first of the events of one time: what the front end hands out, what follows from
    events before, packets. When the first and the last of these are known hangs on where cycles are
    cut into quanta; what happens must not."""

    HANDED_OUT = 0
    FOLLOWS = 1
    PACKET = 2


class EventQueue:
    """Actions to be done at cycles, which may be fractions, in the order of `Rank` where they tie,
    and then in that of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Rank, int, Callable[[float], None]]] = []
        self._order = count()

    def at(self, time: float, action: Callable[[float], None], rank: Rank = Rank.FOLLOWS) -> None:
        """Do ``action(time)`` at ``time``."""
        heapq.heappush(self._heap, (time, rank, next(self._order), action))

    def until(self, horizon: float) -> Iterator[tuple[float, Callable[[float], None]]]:
        """Yield every event before ``horizon`` in order, those added meanwhile included."""
        while self._heap and self._heap[0][0] < horizon:
            time, _, _, action = heapq.heappop(self._heap)
            yield time, action

    @property
    def next_time(self) -> float | None:
        """Time of the first event, None when there is none."""
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)
