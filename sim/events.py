"""An event queue: what happens on a host, in time order, ties in the order of arrival."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count

__all__ = ["EventQueue"]


class EventQueue:
    """Actions to be done at cycles; times may be fractions of a cycle."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()

    def at(self, time: float, action: Callable[[float], None]) -> None:
        """Do ``action(time)`` at ``time``."""
        heapq.heappush(self._heap, (time, next(self._order), action))

    def until(self, horizon: float) -> Iterator[tuple[float, Callable[[float], None]]]:
        """Yield every event before ``horizon`` in order, those added meanwhile included."""
        while self._heap and self._heap[0][0] < horizon:
            time, _, action = heapq.heappop(self._heap)
            yield time, action

    @property
    def next_time(self) -> float | None:
        """Time of the first event, None when there is none."""
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)
