"""Capture of what a PyTorch program does with its embedding tables, operator by operator."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sim.torch.bags import bags_of
from sim.torch.place import place
from sim.torch.session import Session

__all__ = ["Capture", "capturing"]

_BAGS = frozenset(("aten::_embedding_bag", "aten::_embedding_bag_forward_only",
                   "aten::embedding_bag"))
_BACKWARD = frozenset(("aten::_embedding_bag_backward", "aten::_embedding_bag_dense_backward",
                       "aten::_embedding_bag_sparse_backward"))
_LINEAR = {"aten::addmm": (1, 2), "aten::linear": (0, 1)}
"""Linear layers: which arguments are their inputs and their weights."""
_OTHERS = frozenset(("aten::embedding", "aten::embedding_bag", "aten::_embedding_bag",
                     "aten::_embedding_bag_forward_only"))
"""Lookups of aten, which are said where they are not caught. So is every operator of another
library with ``embedding`` in its name that is not a backward pass."""


@lru_cache(maxsize=4096)
def _what(func: Any) -> tuple[str, bool, tuple[int, ...]]:
    """Return an operator's name, whether it is another library's lookup, and which of its
    arguments it writes to."""
    name = func._schema.name
    library, _, own = name.partition("::")
    foreign = library != "aten" and "embedding" in own and "backward" not in own
    written = tuple(number for number, argument in enumerate(func._schema.arguments)
                    if argument.alias_info is not None and argument.alias_info.is_write)
    return name, foreign, written


def _tensors(arguments: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, and in lists among them."""
    for each in arguments:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from _tensors(each)


class Capture(TorchDispatchMode):
    """Leads the embedding bags of a program through a session; all else PyTorch does as ever.

    PyTorch computes each call too: what it keeps for the backward pass is its own, and its vectors
    are compared with those of the session.

    Parameters: the ``session``; ``warn``, called with a line for each lookup that is not caught.

    Members: ``missed``, how often each lookup was not caught, by its place and why.
    """

    def __init__(self, session: Session, warn: Callable[[str], None]):
        super().__init__()
        self._session, self._warn = session, warn
        self._lock = threading.RLock()
        self.missed = Counter[tuple[str, str]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: dict | None = None) -> Any:
        """Do one operator."""
        kwargs = kwargs or {}
        name, foreign, written = _what(func)
        with self._lock:
            if name in _BAGS:
                return self._look_up(name, func, args, kwargs)
            self._before(name, written, args, kwargs)
        if foreign or name in _OTHERS:
            self._miss(name, "no NIC serves this operator")
        if name in _BACKWARD and not self._session.backward(args[1], len(args[0])):
            self._miss(name, "its forward pass was not caught")
        return func(*args, **kwargs)

    def _look_up(self, name: str, func: Any, args: Any, kwargs: dict) -> Any:
        try:
            bags = bags_of(args, kwargs)
        except ValueError as error:
            self._session.mistake = mistake = ValueError(f"{place()}: {error}")
            raise mistake from None
        for each in _tensors((*args, *kwargs.values())):
            if self._session.touches(each):
                self._session.read()
        result = func(*args, **kwargs)
        if isinstance(bags, str):
            self._miss(name, bags)
            return result
        indices = kwargs.get("indices", args[1] if len(args) > 1 else None)
        try:
            self._session.take(bags, result[0], indices)
        except Exception as error:
            self._session.mistake = error
            raise
        return result

    def _before(self, name: str, written: tuple[int, ...], args: Any, kwargs: dict) -> None:
        """Let the session know what an operator reads and writes, before it does."""
        session = self._session
        try:
            if any(map(session.touches, _tensors((*args, *kwargs.values())))):
                session.read()
            if written and any(map(session.tables.holds, _tensors(
                    args[at] for at in written if at < len(args)))):
                session.write()
        except Exception as error:
            session.mistake = error
            raise
        if name in _LINEAR:
            inputs, weights = (args[at].shape for at in _LINEAR[name])
            if len(inputs) == len(weights) == 2:
                session.chains.add(inputs[0], inputs[1], weights[0] + weights[1] - inputs[1])

    def _miss(self, name: str, why: str) -> None:
        missed = place(), f"{name} is not caught: {why}"
        if missed not in self.missed:
            self._warn(": ".join(missed))
        self.missed[missed] += 1


@contextmanager
def capturing(session: Session, warn: Callable[[str], None] | None = None) -> Iterator[Capture]:
    """Capture what this thread does, and what threads do that are begun meanwhile."""
    capture = Capture(session, warn or _to_stderr)
    run = threading.Thread.run

    def captured(thread: threading.Thread) -> None:
        # A mode holds in the thread that entered it.
        with capture:
            run(thread)

    threading.Thread.run = captured
    try:
        with capture:
            yield capture
    finally:
        threading.Thread.run = run


_to_stderr = partial(print, file=sys.stderr)
