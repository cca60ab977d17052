"""Threads and processes of a PyTorch program: those whose operators are caught, and the others."""

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
"""Modules whose threads are not the program's."""

STRANGER = "its thread is not one that the program began with threading"


class OwnThread(threading.Thread):
    """A thread of ours, which does not run the program, and in which nothing is caught."""

    def __init__(self, run: Callable[..., None], *arguments: Any):
        super().__init__(daemon=True)
        self._do = run, arguments

    def run(self) -> None:
        run, arguments = self._do
        run(*arguments)


@contextmanager
def entering(mode: AbstractContextManager) -> Iterator[None]:
    """Let every thread that the program begins inside run in ``mode``: a mode holds in one thread.
    """
    bootstrap = threading.Thread._bootstrap  # above it, a thread's traceback has no frame

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
    """Call ``miss`` with name and reason for lookups of modules in threads of which ``caught`` says
    no: those of a pool that was there before, and those that were begun without threading."""
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
