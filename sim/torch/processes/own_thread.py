"""Threads of ``sim torch`` itself."""

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["OwnThread"]


class OwnThread(threading.Thread):
    """A thread of ours, which does not run the program, and in which nothing is caught."""

    def __init__(self, run: Callable[..., None], *arguments: Any):
        super().__init__(daemon=True)
        self._do = run, arguments

    def run(self) -> None:
        run, arguments = self._do
        run(*arguments)
