"""Threads and processes of a PyTorch program, with and without capture."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

import sim.torch

__all__ = ["FORKED", "STRANGER", "OwnThread", "entering", "on_fork", "watching"]

FORKED = "it is in another process"
_OURS = f"{sim.torch.__name__}."
"""Modules whose threads do not belong to the program."""

STRANGER = "its thread was not started by the program with threading"


class OwnThread(threading.Thread):
    """A thread of EmberNIC, which does not run the program and is not captured."""

    def __init__(self, run: Callable[..., None], *arguments: Any):
        super().__init__(daemon=True)
        self._do = run, arguments

    def run(self) -> None:
        run, arguments = self._do
        run(*arguments)


@contextmanager
def entering(mode: AbstractContextManager) -> Iterator[None]:
    """Run every thread that the program starts in the block in ``mode``.

    A mode otherwise applies to a single thread.
    """
    bootstrap = threading.Thread._bootstrap  # the outermost frame of a thread's traceback

    def entered(thread: threading.Thread) -> None:
        if type(thread).__module__.startswith(_OURS):
            bootstrap(thread)
            return
        with mode:
            bootstrap(thread)

    threading.Thread._bootstrap = entered
    try:
        yield
    finally:
        threading.Thread._bootstrap = bootstrap


@contextmanager
def watching(caught: Callable[[], bool], miss: Callable[[str, str], None]) -> Iterator[None]:
    """Call ``miss`` with name and reason for lookups in threads that ``caught`` rejects.

    These are threads of an existing pool, and threads that were started without ``threading``.
    """
    def called(module: torch.nn.Module, _: Any) -> None:
        if isinstance(module, _LOOKUPS) and not caught():
            miss(f"{type(module).__module__}.{type(module).__qualname__}", STRANGER)

    handle = register_module_forward_pre_hook(called)
    try:
        yield
    finally:
        handle.remove()


_LOOKUPS = (torch.nn.EmbeddingBag, torch.nn.Embedding)

_FORKS = weakref.WeakSet[Any]()


def on_fork(owner: Any) -> None:
    """Call ``owner.forked()`` in each process that is forked from here on."""
    _FORKS.add(owner)


def _forked() -> None:
    for owner in list(_FORKS):
        owner.forked()


os.register_at_fork(after_in_child=_forked)
