"""Capture of a PyTorch program's operators on embedding tables."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

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
from sim.torch.lookups.bags import bags_of
from sim.torch.lookups.place import place
from sim.torch.values.fused_updates import fused_updates

__all__ = ["Capture", "capturing", "check_captured", "claiming"]

_SOON = 1.0
"""Seconds to wait for the operators of other threads."""


class Capture(TorchDispatchMode):
    """Dispatch mode that answers embedding bags by a session; all other operators stay with
    PyTorch.

    PyTorch computes each lookup too: its backward pass uses its own data, and its vectors are
    compared with the session's.

    session: session that answers lookups.
    warn: called with a line for each lookup that is not caught.
    missed: member; number of lookups that were not caught, by source line and reason.
    """

    def __init__(self, session: Session, warn: Callable[[str], None]):
        super().__init__()
        self._warn, self._over = warn, False
        self.begin_anew(session)
        on_fork(self)

    def begin_anew(self, session: Session) -> None:
        """Use a new session from here on, and clear `missed`."""
        self._session, self._lock = session, threading.RLock()
        self._forked = False
        self.missed = Counter[tuple[str, str]]()

    def end(self) -> None:
        """Stop capturing, also in threads that continue."""
        self._over = True

    @contextmanager
    def still(self) -> Iterator[bool]:
        """Hold back new operators of other threads; yield True if running operators ended in time.
        """
        taken = self._lock.acquire(timeout=_SOON)
        try:
            yield taken
        finally:
            if taken:
                self._lock.release()

    def forked(self) -> None:
        """Stop capturing in a forked process, unless it calls `begin_anew`."""
        self._forked, self._lock = True, threading.RLock()  # another thread may hold the old lock

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: dict | None = None) -> Any:
        """Run an operator."""
        kwargs = kwargs or {}
        name, kind, written = operator_of(func)
        if self._over or self._forked:
            result = func(*args, **kwargs)
            if kind in LOOKUPS and not self._over:
                self.miss(name, FORKED)
            return result
        with self._lock:
            if kind == "bags":
                return self._look_up(name, func, args, kwargs)
            if kind == "fused":
                return self._look_up_fused(name, func, args, kwargs)
            by_nics = kind == "update" and self._session.nic_optimizer is not None
            self._before(name, () if by_nics else written, args, kwargs)
        if kind == "exchange":
            note_exchange(args[1])
        elif kind == "gradients":
            given = fused.named(func, args, kwargs)
            if self._gradients(name, given["indices"], given["bag_size"], len(given["grad"])):
                self._to_nics(given)
        elif kind == "update":
            given = fused.named(func, args, kwargs)
            if self._gradients(name, given["indices"], given["indices"]):
                return self._update(name, given, func, args, kwargs)
        result = func(*args, **kwargs)
        if kind == "other":
            self.miss(name, "no NIC serves this operator")
        return result

    def _look_up(self, name: str, func: Any, args: Any, kwargs: dict) -> Any:
        self._before(name, (), args, kwargs)
        result = func(*args, **kwargs)  # rejects wrong arguments with PyTorch's exceptions
        indices, kept = fused.named(func, args, kwargs)["indices"], result[2]
        with self._ending():
            bags = bags_of(args, kwargs, self._session.options.widest)
            if isinstance(bags, str):
                self._session.leave(kept)
            else:
                self._session.take([(bags, result[0])], indices, kept)
                if self._session.nic_optimizer is not None:
                    self._session.nic_optimizer.forward(bags, kept)
        if isinstance(bags, str):
            self.miss(name, bags)
        return result

    def _look_up_fused(self, name: str, func: Any, args: Any, kwargs: dict) -> Any:
        given = fused.named(func, args, kwargs)
        self._before(name, (), args, kwargs)
        result = func(*args, **kwargs)  # rejects wrong arguments with FBGEMM's exceptions
        indices = given["indices"]
        with self._ending():
            features = fused.bags_of_fused(name, given, self._session.options.widest)
            missed = [features] if isinstance(features, str) else [
                each.bags for each in features if isinstance(each.bags, str)]
            calls = [] if isinstance(features, str) else [
                (each.bags, each.vectors(result)) for each in features
                if not isinstance(each.bags, str)]
            if calls:
                self._session.take(calls, indices, indices)
            else:
                self._session.leave(indices)
        for why in missed:
            self.miss(name, why)
        if calls and fused.is_variable(name) and self._session.nic_optimizer is not None:
            with self._refusing():
                raise ValueError(f"optimizer_on must be host where the features of {name} have "
                                 f"different numbers of samples, not 'nic'")
        if calls and result.requires_grad:  # its backward pass calls no operator
            if self._session.nic_optimizer is not None:
                with self._refusing():
                    raise ValueError(
                        f"optimizer_on must be host where {name} has gradients, not 'nic'")

            def came_back(_: torch.Tensor) -> None:
                self._gradients(name, indices, indices)

            result.register_hook(came_back)
        return result

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Note an exception that must end the program, even if the program catches it."""
        try:
            yield
        except Exception as error:
            self._session.mistake = error
            raise

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """End the program with a ``ValueError`` from the block, prefixed with the program's source
        line."""
        with self._ending():
            try:
                yield
            except ValueError as error:
                raise ValueError(f"{place()}: {error}") from None

    def _gradients(self, name: str, indices: torch.Tensor, kept: torch.Tensor,
                   bags: int | None = None) -> bool:
        with self._lock:
            taken = self._session.backward(indices, kept, bags)
            if not taken:
                self.miss(name, "its forward pass was not caught")
            return taken

    def _to_nics(self, given: dict[str, Any]) -> None:
        if self._session.nic_optimizer is not None:
            with self._refusing(), self._lock:
                self._session.nic_optimizer.backward(given)

    def _update(self, name: str, given: dict[str, Any], func: Any, args: Any, kwargs: dict) -> Any:
        """Run an update of FBGEMM, or let the NICs' optimizer replace it."""
        if self._session.nic_optimizer is None:
            self._session.updates[fused.optimizer_of(name)] += 1
            return func(*args, **kwargs)
        with self._refusing():
            with self._lock:
                self._session.updating()
            updates = fused_updates(name, given, self._session.tables, self._session.options.widest)
        result = func(*args, **kwargs)
        with self._refusing(), self._lock:
            self._session.update(updates)
        return result

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """Let the NICs' optimizer, if enabled, replace PyTorch's."""
        if self._session.nic_optimizer is None:
            yield
            return

        def before(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
            if nics := self._session.nic_optimizer:
                with self._refusing():
                    nics.step(optimizer, (*args[1:], *kwargs.values()))

        def after(*_: Any) -> None:
            if nics := self._session.nic_optimizer:
                with self._refusing():
                    nics.stepped()

        hooks = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            if nics := self._session.nic_optimizer:
                nics.close()

    def _before(self, name: str, written: tuple[int, ...], args: Any, kwargs: dict) -> None:
        """Report the reads and writes of an operator to the session, before it runs."""
        session = self._session
        with self._ending():
            if any(map(session.touches, tensors_among((*args, *kwargs.values())))):
                session.read()
            if written and any(map(session.tables.holds, tensors_among(
                    args[at] for at in written if at < len(args)))):
                session.write()
        if name in LINEAR:
            inputs, weights = (args[at].shape for at in LINEAR[name])
            if len(inputs) == len(weights) == 2:
                session.chains.add(inputs[0], inputs[1], weights[0] + weights[1] - inputs[1])

    def miss(self, name: str, why: str) -> None:
        """Count a lookup that is not caught; warn about the first at each source line."""
        missed = place(), f"{name} is not caught: {why}"
        with self._lock:
            if missed not in self.missed:
                self._warn(": ".join(missed))
            self.missed[missed] += 1


def check_captured(name: str) -> None:
    """Raise ``RuntimeError`` if lookups of this thread are not caught.

    name: class name of the module that requires NICs.
    """
    if not _caught():
        raise RuntimeError(f"a {name} must be called inside sim.api.attach or by a script of sim "
                           f"torch")


def _caught() -> bool:
    """Return True if the operators of this thread are caught."""
    return any(isinstance(mode, Capture) for mode in _get_current_dispatch_mode_stack())


@contextmanager
def capturing(session: Session, warn: Callable[[str], None] | None = None) -> Iterator[Capture]:
    """Capture operators of this thread and of all threads that it starts in the block.

    Raises ``RuntimeError`` if another session is `claiming` this process.
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
    """Let only ``session`` capture in this process, because PyTorch's hooks are global.

    Raises ``RuntimeError`` if another session captures.
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
"""The capturing session, by process number."""
_to_stderr = partial(print, file=sys.stderr)
