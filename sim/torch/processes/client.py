"""Connection of a process to the server of its program."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import _exit  # `leaving` replaces os._exit
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
"""Seconds that a process gets to end by itself after a failure of a different process."""
REPORTING = 60.0
"""The same for the process that reports, which waits until the others have ended."""


class Failure(NamedTuple):
    """Cause of a program's end.

    status: exit status.
    text: message for the user.
    ended: message for the report, in a line; empty after a user error, which has no report.
    """

    status: int
    text: str
    ended: str = ""


class ProcessError(Exception):
    """A process of the program failed, and the user has seen the reason.

    status: exit status.
    result: report up to the failure; None without a report, and in processes that do not report.
    """

    result: dict | None = None

    def __init__(self, status: int):
        super().__init__(f"a process of the program failed, with exit status {status}")
        self.status = status


def failure_of(error: Exception) -> Failure:
    """Return the failure for an error.

    The text is a single line for user errors and for NICs that do not answer; otherwise it contains
    the traceback of the error, or of the script's exception.
    """
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | TypeError | OSError | BuildError):
        return Failure(2, text)
    if isinstance(error, NicsError):
        return Failure(1, text)
    return Failure(1, "".join((*format_exception(error.__cause__ or error), f"sim: {text}\n")),
                   text)


class Client:
    """Connection of a process to the server.

    address: address of the server.
    rank, size: rank of this process, and number of processes.
    so_far: function that returns the observations so far, or None; called in a separate thread.
    grace: seconds that the process gets to end by itself after a failure of a different process.
    bound: True if the process ends when the server ends; otherwise it continues.

    Raises the exceptions of :func:`sim.torch.processes.wire.connect`.
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
        if not self._over.is_set():  # the server has ended
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
        """End this process after `grace`, unless it ends by itself: it may wait for a dead process.
        """
        if not self._leaving.wait(self._grace):
            _exit(1)

    def leave(self) -> None:
        """Note that this process ends by itself."""
        self._leaving.set()

    def others_failed(self, seconds: float) -> bool:
        """Return True if a different process fails within ``seconds``."""
        return self._failed.wait(seconds)

    def come(self) -> None:
        """Report that this process enters a collective of all processes."""
        with self._lock, suppress(OSError):
            self._collectives += 1
            write(self._channel, "come", self._collectives)

    def wait(self) -> None:
        """Report that this process may wait for some of the other processes."""
        with self._lock, suppress(OSError):
            write(self._channel, "waits")

    def ask(self, asked: Sequence[Query] | AskedUpdate, changed: bool,
            step: int) -> list[np.ndarray]:
        """Return the answer of the NICs at the server: pooled vectors of queries, or rows and
        states of an update.

        See :data:`sim.torch.lookups.query.Elsewhere` and
        :data:`sim.torch.values.asked.UpdateElsewhere`.

        step: number of the mini-batch.

        Raises `ProcessError` if a process has failed.
        """
        with self._lock, suppress(OSError):
            write(self._channel, "update" if isinstance(asked, AskedUpdate) else "look up",
                  self._collectives, asked, changed, step)
        answers = self._answers.get()
        if answers is None:
            self._answers.put(None)  # for the next call
            raise ProcessError(1)
        return answers

    def counted(self, session: Session) -> None:
        """Send the counts since the last call. If the process is killed, the report uses them."""
        tables, steps = self._counted
        new = Counts([table.to_json() for table in session.tables.all[tables:]],
                     session.record.steps[steps:], session.record.exchanges)
        self._counted = tables + len(new.tables), steps + len(new.steps)
        with self._lock, suppress(OSError):
            write(self._channel, "counted", new)

    def seen(self, seen: Seen) -> None:
        """Send the final observations of this process."""
        self._say("seen", seen)

    def tell(self) -> None:
        """Send the observations of this process so far."""
        with suppress(OSError):
            if (seen := self._so_far()) is not None:
                with self._lock:
                    write(self._channel, "so far", seen)

    def failed(self, failure: Failure) -> None:
        """Report the failure of this process; the server shows the first failure to the user."""
        self._say("failed", *failure)

    def _say(self, *said: Any) -> None:
        with suppress(OSError):
            with self._lock:
                write(self._channel, *said)
            self._over.wait()
