"""Thread pool that gives each thread the same items in every round."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Generic, Self, TypeVar

__all__ = ["Crew"]

T = TypeVar("T")


class Crew(Generic[T]):
    """Thread pool that applies an action to each of a list of items; a context manager.

    Parameters: ``items``; ``threads``, the number of threads, including the caller's.

    A thread begins with its own items, whose data may still be in its processor's cache. Then it
    takes items of the other threads, the last items first, to stay busy.
    """

    def __init__(self, items: Sequence[T], threads: int):
        self._shares = [items[first::threads] for first in range(threads)]
        self._stack = ExitStack()
        # One executor per thread: a shared executor cannot assign a job to a given thread.
        self._helpers = [self._stack.enter_context(ThreadPoolExecutor(1))
                         for _ in range(threads - 1)]

    def each(self, action: Callable[[T], None]) -> None:
        """Apply ``action`` to every item and wait for the last; re-raises its errors."""
        left = list(map(deque, self._shares))

        def work(own: int) -> None:
            for item in _taken(left[own], deque.popleft):
                action(item)
            for other in left:
                for item in _taken(other, deque.pop):
                    action(item)

        jobs = [helper.submit(work, own) for own, helper in enumerate(self._helpers, 1)]
        work(0)
        for job in jobs:
            job.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _taken(items: deque[T], take: Callable[[deque[T]], T]) -> Iterator[T]:
    """Yield items that ``take`` removes until ``items`` is empty; other threads may also take
    items."""
    while True:
        try:
            item = take(items)
        except IndexError:
            return
        yield item
