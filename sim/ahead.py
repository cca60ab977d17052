"""Items made ahead of their use, beside the nodes where threads are."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from time import thread_time
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(AbstractContextManager, Generic[T]):
    """Takes items from an iterator, which nobody else may use.

    Parameters
    ----------
    items: none of them None.
    beside: whether the next item is made in a thread of its own while this one is used.

    Members: ``seconds``, CPU time of making them.
    """

    def __init__(self, items: Iterator[T], *, beside: bool):
        self._items = items
        self._pool = ThreadPoolExecutor(1) if beside else None
        self._coming: Future[T | None] | None = None
        self.seconds = 0.0

    def __exit__(self, *_) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def take(self) -> T | None:
        """Return the next item, None at the end. What the iterator raises comes out here, in the
        item's turn."""
        if self._pool is None:
            return self._make()
        coming, self._coming = self._coming or self._pool.submit(self._make), None
        item = coming.result()
        self._coming = self._pool.submit(self._make)
        return item

    def _make(self) -> T | None:
        began = thread_time()
        try:
            return next(self._items, None)
        finally:
            self.seconds += thread_time() - began
