"""Capture of what a PyTorch program does with its embedding tables, operator by operator."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from sim.torch.catching.eager import eager
from sim.torch.catching.operators import LINEAR, LOOKUPS, operator_of, tensors_among
from sim.torch.catching.process_group import note_exchange
from sim.torch.catching.session import Session
from sim.torch.catching.threads import FORKED, entering, on_fork, watching
from sim.torch.lookups import fused
from sim.torch.lookups.bags import Bags, bags_of
from sim.torch.lookups.place import place
from sim.torch.values.fused_updates import fused_updates

__all__ = ["Capture", "capturing", "check_captured", "claiming"]

_Bags = TypeVar("_Bags")
_SOON = 1.0
"""Seconds."""

class Capture(TorchDispatchMode):
    """Leads the embedding bags of a program through a session; all else PyTorch does as ever.

    PyTorch computes each call too: what it keeps for the backward pass is its own, and its vectors
    are compared with those of the session.

    Parameters: the ``session``; ``warn``, called with a line for each lookup that is not caught.

    Members: ``missed``, how often each lookup was not caught, by its place and why.
    """

    def __init__(self, session: Session, warn: Callable[[str], None]):
        super().__init__()
        self._warn, self._over = warn, False
        self.begin_anew(session)
        on_fork(self)

    def begin_anew(self, session: Session) -> None:
        """Lead what follows through another session, with nothing missed yet."""
        self._session, self._lock = session, threading.RLock()
        self._forked = False
        self.missed = Counter[tuple[str, str]]()

    def end(self) -> None:
        """Catch nothing any more, whatever threads go on."""
        self._over = True

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let no operator of another thread begin, if those under way end soon."""
        taken = self._lock.acquire(timeout=_SOON)
        try:
            yield
        finally:
            if taken:
                self._lock.release()

    def forked(self) -> None:
        """This is a copy in a process of its own: nobody gets what it would catch, unless it begins
        anew."""
        self._forked, self._lock = True, threading.RLock()  # another thread may have had the lock

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: dict | None = None) -> Any:
        """Do one operator."""
        kwargs = kwargs or {}
        name, kind, written = operator_of(func)
        if self._over or self._forked:
            if kind in LOOKUPS and not self._over:
                self.miss(name, FORKED)
            return func(*args, **kwargs)
        with self._lock:
            if kind == "bags":
                return self._look_up(name, func, args, kwargs)
            if kind == "fused":
                return self._look_up_fused(name, func, args, kwargs)
            by_nics = kind == "update" and self._session.nic_optimizer is not None
            self._before(name, () if by_nics else written, args, kwargs)
        if kind == "exchange":
            note_exchange(args[1])
        if kind == "other":
            self.miss(name, "no NIC serves this operator")
        elif kind == "gradients":
            if self._gradients(name, args[1], len(args[0])) and self._session.nic_optimizer:
                self._to_nics(fused.named(func, args, kwargs))
        elif kind == "update":
            given = fused.named(func, args, kwargs)
            if self._gradients(name, given["indices"], len(given["offsets"]) - 1):
                return self._update(name, given, func, args, kwargs)
        return func(*args, **kwargs)

    def _look_up(self, name: str, func: Any, args: Any, kwargs: dict) -> Any:
        bags, result = self._done(lambda: bags_of(args, kwargs), func, args, kwargs)
        if isinstance(bags, str):
            self.miss(name, bags)
            return result
        indices = kwargs.get("indices", args[1] if len(args) > 1 else None)
        self._take([(bags, result[0])], indices)
        if self._session.nic_optimizer is not None:
            self._session.nic_optimizer.forward(bags, result[2])
        return result

    def _look_up_fused(self, name: str, func: Any, args: Any, kwargs: dict) -> Any:
        given = fused.named(func, args, kwargs)
        features, result = self._done(lambda: fused.bags_of_fused(name, given), func, args, kwargs)
        if isinstance(features, str):
            self.miss(name, features)
            return result
        vectors = result.detach()
        self._take([(each.bags, vectors[:, each.columns]) for each in features], given["indices"])
        if result.requires_grad:  # its backward pass is no operator
            if self._session.nic_optimizer is not None:
                raise self._mistake(ValueError(
                    f"optimizer_on must be host where {name} has gradients, not 'nic'"))

            def came_back(_: torch.Tensor) -> None:
                self._gradients(name, given["indices"], len(given["offsets"]) - 1)

            result.register_hook(came_back)
        return result

    def _done(self, bags: Callable[[], _Bags], func: Any, args: Any,
              kwargs: dict) -> tuple[_Bags, Any]:
        """Return the bags of a lookup, and what PyTorch or a library of it makes of them."""
        try:
            found = bags()
        except ValueError as error:
            raise self._mistake(error) from None
        for each in tensors_among((*args, *kwargs.values())):
            if self._session.touches(each):
                self._session.read()
        return found, func(*args, **kwargs)

    def _take(self, calls: list[tuple[Bags, torch.Tensor]], indices: torch.Tensor) -> None:
        try:
            self._session.take(calls, indices)
        except Exception as error:
            self._session.mistake = error
            raise

    def _gradients(self, name: str, indices: torch.Tensor, bags: int) -> bool:
        with self._lock:
            taken = self._session.backward(indices, bags)
            if not taken:
                self.miss(name, "its forward pass was not caught")
            return taken

    def _to_nics(self, given: dict[str, Any]) -> None:
        optimizer = self._session.nic_optimizer
        assert optimizer is not None
        try:
            with self._lock:
                optimizer.backward(given)
        except ValueError as error:
            raise self._mistake(error) from None

    def _update(self, name: str, given: dict[str, Any], func: Any, args: Any, kwargs: dict) -> Any:
        """Do an update of FBGEMM's, or let the NICs' take its place."""
        if self._session.nic_optimizer is None:
            self._session.updates[fused.optimizer_of(name)] += 1
            return func(*args, **kwargs)
        try:
            with self._lock:
                self._session.updating()
            updates = fused_updates(name, given, self._session.tables)
        except ValueError as error:
            raise self._mistake(error) from None
        result = func(*args, **kwargs)
        try:
            with self._lock:
                self._session.update(updates)
        except ValueError as error:
            raise self._mistake(error) from None
        return result

    def _mistake(self, error: ValueError) -> ValueError:
        """Return what the program gets for what it may not do: it ends with that."""
        self._session.mistake = mistake = ValueError(f"{place()}: {error}")
        return mistake

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Let the NICs' optimizer, if there is one, take the place of PyTorch's."""
        if self._session.nic_optimizer is None:
            yield
            return

        def before(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
            if nics := self._session.nic_optimizer:
                try:
                    nics.step(optimizer, (*args[1:], *kwargs.values()))
                except ValueError as error:
                    raise self._mistake(error) from None

        def after(*_: Any) -> None:
            if nics := self._session.nic_optimizer:
                try:
                    nics.stepped()
                except ValueError as error:
                    raise self._mistake(error) from None

        hooks = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            if nics := self._session.nic_optimizer:
                nics.close()

    def _before(self, name: str, written: tuple[int, ...], args: Any, kwargs: dict) -> None:
        """Let the session know what an operator reads and writes, before it does."""
        session = self._session
        try:
            if any(map(session.touches, tensors_among((*args, *kwargs.values())))):
                session.read()
            if written and any(map(session.tables.holds, tensors_among(
                    args[at] for at in written if at < len(args)))):
                session.write()
        except Exception as error:
            session.mistake = error
            raise
        if name in LINEAR:
            inputs, weights = (args[at].shape for at in LINEAR[name])
            if len(inputs) == len(weights) == 2:
                session.chains.add(inputs[0], inputs[1], weights[0] + weights[1] - inputs[1])

    def miss(self, name: str, why: str) -> None:
        """Take note of a lookup that is not caught."""
        missed = place(), f"{name} is not caught: {why}"
        with self._lock:
            if missed not in self.missed:
                self._warn(": ".join(missed))
            self.missed[missed] += 1


def check_captured(name: str) -> None:
    """Raise ``RuntimeError`` where what this thread looks up does not go to NICs; ``name``: of the
    module that must."""
    if not _caught():
        raise RuntimeError(f"a {name} must be called inside sim.api.attach or by a script of sim "
                           f"torch")


def _caught() -> bool:
    """Return whether the operators of this thread are caught."""
    return any(isinstance(mode, Capture) for mode in _get_current_dispatch_mode_stack())


@contextmanager
def capturing(session: Session, warn: Callable[[str], None] | None = None) -> Iterator[Capture]:
    """Capture what this thread does, and what threads do that are begun meanwhile.

    Raises ``RuntimeError`` where another session is `claiming` this process.
    """
    capture = Capture(session, warn or _to_stderr)
    try:
        with (claiming(session), eager(), entering(capture), watching(_caught, capture.miss),
              capture, capture.optimizing()):
            yield capture
    finally:
        capture.end()


@contextmanager
def claiming(session: Session) -> Iterator[None]:
    """Let only ``session`` capture in this process: PyTorch has one set of hooks.

    Raises ``RuntimeError`` where another session does.
    """
    process = os.getpid()  # a fork captures for itself
    first = process not in _capturing
    if _capturing.setdefault(process, session) is not session:
        raise RuntimeError("only one sim.api.attach or sim torch can run in a process at a time: "
                           "begin the next after the end of the first")
    try:
        yield
    finally:
        if first:
            del _capturing[process]


_capturing: dict[int, Session] = {}
"""The session that captures, by the number of its process."""
_to_stderr = partial(print, file=sys.stderr)
