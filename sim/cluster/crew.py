"""Threads that share items out among them, the same ones to the same thread each time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Generic, Self, TypeVar

from sim.node.protocol import ClusterNode

__all__ = ["Crew", "NodeCrew"]

T = TypeVar("T")


class Crew(Generic[T]):
    """Does something to each of some items, several at once; a context manager.

    Parameters: ``items``; ``threads``, the caller's included, of which none is idle for long.

    A thread begins with its own items, whose data its processor may still have at hand, and then
    helps the others with the last of theirs.
    """

    def __init__(self, items: Sequence[T], threads: int):
        self._shares = [items[first::threads] for first in range(threads)]
        self._stack = ExitStack()
        # Of one thread each: which one takes a job is then known.
        self._helpers = [self._stack.enter_context(ThreadPoolExecutor(1))
                         for _ in range(threads - 1)]

    def each(self, action: Callable[[T], None]) -> None:
        """Do ``action`` to every item, and return when all is done; raises what it raised."""
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
    """Yield what ``take`` gives until there is no more; others may take at the same time."""
    while True:
        try:
            item = take(items)
        except IndexError:
            return
        yield item


class NodeCrew(Crew[ClusterNode]):
    """Advances the nodes of a cluster, several at once."""

    def advance(self, end: int) -> None:
        """Run every NIC and its host up to cycle ``end``; raises what one of them raises."""
        self.each(lambda node: node.advance(end))
