"""The side of a process that reports to the server of its program."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import _exit  # the program may have been given another one
from queue import SimpleQueue
from traceback import format_exception
from typing import Any, NamedTuple

import numpy as np

from sim.engines import BuildError
from sim.torch.catching.session import Session
from sim.torch.catching.threads import OwnThread
from sim.torch.lookups.query import Query
from sim.torch.processes.key import Address
from sim.torch.processes.merge import Counts, Seen
from sim.torch.processes.messages import TO_PROCESS, read, write
from sim.torch.processes.wire import MessageError, connect
from sim.torch.values.asked import AskedUpdate
from sim.torch.values.nics import NicsError

__all__ = ["Client", "Failure", "ProcessError", "failure_of"]

GRACE = 10.0
"""Seconds in which a process ends by itself after another has failed."""
REPORTING = 60.0
"""The same of the process that reports, which waits for others until they are gone."""


class Failure(NamedTuple):
    """Why a program ended: the exit ``status``, and ``text`` in words. ``ended``: the same in a
    line, where what the program did before is reported; empty after a mistake of the user's."""

    status: int
    text: str
    ended: str = ""


class ProcessError(Exception):
    """A process of the program failed, and the user was told why.

    Members: ``status``, to exit with; ``result``, the report of what the program did before, None
    where there is none, and in processes other than the one that reports.
    """

    result: dict | None = None

    def __init__(self, status: int):
        super().__init__(f"a process of the program failed, with exit status {status}")
        self.status = status


def failure_of(error: Exception) -> Failure:
    """Return how an error ends a program: in one line where it is a mistake of the user's, or NICs
    do not answer; else with its traceback, or that of what the script raised."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | TypeError | OSError | BuildError):
        return Failure(2, text)
    if isinstance(error, NicsError):
        return Failure(1, text)
    return Failure(1, "".join((*format_exception(error.__cause__ or error), f"sim: {text}\n")),
                   text)


class Client:
    """Reports of a process to the server; the process has a ``rank`` among ``size``.

    ``so_far``: returns what was seen of it until now, None for nothing; called in another thread.
    ``grace``: seconds in which the process ends by itself after another has failed. ``bound``:
    whether the process ends when the server does; else it goes on, as it would alone.

    Raises as :func:`sim.torch.processes.wire.connect` does.
    """

    def __init__(self, address: Address, rank: int | None, size: int,
                 so_far: Callable[[], Seen | None], grace: float = GRACE, bound: bool = True):
        self.rank, self.size = rank, size
        self._so_far, self._grace, self._bound = so_far, grace, bound
        self._channel = connect(address)
        self._failed, self._over = threading.Event(), threading.Event()
        self._leaving = threading.Event()
        self._collectives, self._lock = 0, threading.Lock()
        self._counted = 0, 0
        self._answers = SimpleQueue[list[np.ndarray] | None]()
        if rank is not None:
            write(self._channel, "rank", rank, size)
        OwnThread(self._hear).start()

    def _hear(self) -> None:
        with suppress(EOFError, OSError, MessageError):
            while (heard := read(self._channel, TO_PROCESS))[0] != "over":
                what, said = heard
                if what == "answer":
                    self._answers.put(*said)
                    continue
                if what == "failed":
                    self._failed.set()
                    self._answers.put(None)
                    OwnThread(self._end).start()
                OwnThread(self.tell).start()
            self._over.set()
            return
        if not self._over.is_set():  # the server itself has ended
            failed = self._failed.is_set()
            self._answers.put(None)
            if not self._bound:
                self._over.set()
                return
            self._failed.set()
            if self.rank == 1 and not failed:
                sys.stderr.write(f"sim: process 0 of {self.size} ended before the program did\n")
            self._over.set()
            self._end()

    def _end(self) -> None:
        """End this process, which may wait for one that is no more, unless it ends by itself."""
        if not self._leaving.wait(self._grace):
            _exit(1)

    def leave(self) -> None:
        """This process ends by itself."""
        self._leaving.set()

    def others_failed(self, seconds: float) -> bool:
        """Return whether another process has failed, or does so within some ``seconds``."""
        return self._failed.wait(seconds)

    def come(self) -> None:
        """Say that this process comes to a collective of all."""
        with self._lock, suppress(OSError):
            self._collectives += 1
            write(self._channel, "come", self._collectives)

    def wait(self) -> None:
        """Say that this process may wait for some of the others."""
        with self._lock, suppress(OSError):
            write(self._channel, "waits")

    def ask(self, asked: Sequence[Query] | AskedUpdate, changed: bool,
            step: int) -> list[np.ndarray]:
        """Return the pooled vectors of queries, or the rows and states of an update, by the NICs at
        the server; see :data:`sim.torch.lookups.query.Elsewhere` and
        :data:`sim.torch.values.asked.UpdateElsewhere`. ``step``: the number of the mini-batch.

        `ProcessError` where a process has failed.
        """
        with self._lock, suppress(OSError):
            write(self._channel, "update" if isinstance(asked, AskedUpdate) else "look up",
                  self._collectives, asked, changed, step)
        answers = self._answers.get()
        if answers is None:
            self._answers.put(None)  # for whoever asks again
            raise ProcessError(1)
        return answers

    def counted(self, session: Session) -> None:
        """Say what a session has counted since the last time: it is all that is known of a process
        that is killed."""
        tables, steps = self._counted
        new = Counts([table.to_json() for table in session.tables.all[tables:]],
                     session.record.steps[steps:], session.record.exchanges)
        self._counted = tables + len(new.tables), steps + len(new.steps)
        with self._lock, suppress(OSError):
            write(self._channel, "counted", new)

    def seen(self, seen: Seen) -> None:
        """Say what was seen of this process."""
        self._say("seen", seen)

    def tell(self) -> None:
        """Say what was seen of this process until now."""
        with suppress(OSError):
            if (seen := self._so_far()) is not None:
                with self._lock:
                    write(self._channel, "so far", seen)

    def failed(self, failure: Failure) -> None:
        """Say that this process failed, which is shown to the user if it is the first."""
        self._say("failed", *failure)

    def _say(self, *said: Any) -> None:
        with suppress(OSError):
            with self._lock:
                write(self._channel, *said)
            self._over.wait()
