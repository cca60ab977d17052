"""Items made ahead of their use, beside the nodes where threads are."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from queue import SimpleQueue
from time import thread_time
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(AbstractContextManager, Generic[T]):
    """Takes items from an iterator, which nobody else may use.

    Parameters
    ----------
    items: none of them None.
    beside: whether, once this is entered as a context manager, the next item is made in a thread of
        its own while one is used. What is taken before is made by the caller, who can then be
        interrupted.

    Members: ``seconds``, CPU time of making them since it was entered.

    Nobody waits for an item under way when this is left: it may be a whole window of a file.
    """

    def __init__(self, items: Iterator[T], *, beside: bool):
        self._items, self._beside = items, beside
        self._made: SimpleQueue[tuple[T | None, BaseException | None]] | None = None
        self._wanted = threading.Semaphore()
        self._left = self._ended = False
        self.seconds = 0.0

    def __enter__(self) -> "Ahead[T]":
        self.seconds = 0.0
        if self._beside:
            self._made = SimpleQueue()
            threading.Thread(target=self._work, args=(self._made,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._left = True
        self._wanted.release()

    def take(self) -> T | None:
        """Return the next item, None at the end. What the iterator raises comes out here, in the
        item's turn, and ends it."""
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
