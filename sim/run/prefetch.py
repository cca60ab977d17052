"""Prefetch the next item on a background thread."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from queue import SimpleQueue
from time import thread_time
from typing import Generic, TypeVar

__all__ = ["Prefetcher"]

T = TypeVar("T")


class Prefetcher(AbstractContextManager, Generic[T]):
    """Prefetches an item of an iterator; the caller must not use the iterator elsewhere.

    Parameters
    ----------
    items: the iterator; no item may be None.
    background: whether a background thread makes the next item while the caller uses the last,
        once the context manager is entered. Before that, `take` makes items on the caller's
        thread, where a signal can interrupt it.

    Members: ``seconds``, CPU time of making items since the context manager was entered.

    Leaving the context manager does not wait for an unfinished item, which may be a whole window of
    a file.
    """

    def __init__(self, items: Iterator[T], *, background: bool):
        self._items, self._background = items, background
        self._made: SimpleQueue[tuple[T | None, BaseException | None]] | None = None
        self._wanted = threading.Semaphore()
        self._left = self._ended = False
        self.seconds = 0.0

    def __enter__(self) -> "Prefetcher[T]":
        self.seconds = 0.0
        if self._background:
            self._made = SimpleQueue()
            threading.Thread(target=self._work, args=(self._made,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._left = True
        self._wanted.release()

    def take(self) -> T | None:
        """Return the next item, None at the end.

        An exception of the iterator is re-raised here when its item is due, and ends the items.
        """
        if self._made is None:
            return self._make()
        if self._ended:
            return None
        item, error = self._made.get()
        self._ended = item is None
        self._wanted.release()
        if error is not None:
            raise error
        return item

    def _work(self, made: SimpleQueue[tuple[T | None, BaseException | None]]) -> None:
        item: T | None
        while True:
            self._wanted.acquire()
            if self._left:
                return
            try:
                item = self._make()
                made.put((item, None))
            except BaseException as error:
                item = None
                made.put((None, error))
            if item is None:
                return

    def _make(self) -> T | None:
        began = thread_time()
        try:
            return next(self._items, None)
        finally:
            self.seconds += thread_time() - began
