"""Where the processes of a program are put together: one of them hears all the others."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from time import sleep
from typing import Any, NamedTuple

from sim.torch.seen import Seen

__all__ = ["Address", "Failure", "Hub", "Link"]

Address = tuple[str, int, bytes]
"""Where a hub listens: host, port, and the key without which it does not."""

GRACE = 10.0
"""Seconds in which a process ends by itself after another has failed."""


class Failure(NamedTuple):
    """Why a program ended: the exit ``status``, and ``text`` in words."""

    status: int
    text: str


class _Thread(threading.Thread):
    """A thread of ours, which does not run the program."""

    def __init__(self, run: Callable[..., None], *arguments: Any):
        super().__init__(daemon=True)
        self._do = run, arguments

    def run(self) -> None:  # not that of the parent, which is changed while a program is captured
        run, arguments = self._do
        run(*arguments)


class Hub:
    """Hears what each process has seen, or that it ended without a word.

    The first that fails is said in words to standard error, at once, and to all the others.

    Members: ``address``; ``failure`` of the program, None for none.
    """

    def __init__(self):
        key = os.urandom(16)
        self._listener = Listener(("127.0.0.1", 0), authkey=key)
        host, port = self._listener.address
        self.address: Address = host, port, key
        self.failure: Failure | None = None
        self._changed = threading.Condition()
        self._links: dict[Connection, str] = {}
        self._seen: list[Seen] = []
        _Thread(self._accept).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            except Exception:  # not one of ours
                continue
            with self._changed:
                self._links[connection] = "a process"
            _Thread(self._hear, connection).start()

    def _hear(self, connection: Connection) -> None:
        """Do what a process says, until it ends."""
        over = False
        with suppress(EOFError, OSError):
            while not over:
                what, *said = connection.recv()
                if what == "rank":
                    self._links[connection] = "process {} of {}".format(*said)
                elif what == "seen":
                    with self._changed:
                        self._seen.append(said[0])
                    over = True
                elif what == "failed":
                    self._fail(Failure(*said))
                    over = True
            with self._changed:
                connection.send("over")
        if not over:
            self._fail(Failure(1, f"{self._links[connection]} ended before the program did"))
        with self._changed:
            del self._links[connection]
            self._changed.notify_all()

    def _fail(self, failure: Failure) -> None:
        with self._changed:
            if self.failure is not None:
                return
            self.failure = failure
            sys.stderr.write(failure.text if failure.text.endswith("\n") else
                             f"sim: {failure.text}\n")
            sys.stderr.flush()
            for other in self._links:
                with suppress(OSError):
                    other.send("failed")
            self._changed.notify_all()

    def gathered(self, size: int | None = None) -> list[Seen]:
        """Return what each process has seen, by their ranks, when all have; after a failure nothing
        is certain.

        ``size``: of the program; None for the processes that are there.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.failure is not None or (
                not self._links and len(self._seen) >= (size or 0)))
            return sorted(self._seen, key=lambda seen: seen.rank or 0)

    def close(self) -> None:
        """Hear no more processes."""
        self._listener.close()


class Link:
    """What a process says to the hub, as one of ``size`` with a ``rank`` of its own."""

    def __init__(self, address: Address, rank: int | None, size: int):
        host, port, key = address
        self.rank, self.size = rank, size
        self._connection = Client((host, port), authkey=key)
        self._failed, self._over = threading.Event(), threading.Event()
        if rank is not None:
            self._connection.send(("rank", rank, size))
        _Thread(self._hear).start()

    def _hear(self) -> None:
        with suppress(EOFError, OSError):
            while (word := self._connection.recv()) != "over":
                if word == "failed":
                    self._failed.set()
                    _Thread(self._end).start()
            self._over.set()
            return
        if not self._over.is_set():  # the hub itself has ended
            failed = self._failed.is_set()
            self._failed.set()
            if self.rank == 1 and not failed:
                sys.stderr.write(f"sim: process 0 of {self.size} ended before the program did\n")
            self._over.set()
            self._end()

    def _end(self) -> None:
        """End this process, which may wait for one that is no more."""
        sleep(GRACE)
        os._exit(1)

    def others_failed(self, seconds: float) -> bool:
        """Return whether another process has failed, or does so within some ``seconds``."""
        return self._failed.wait(seconds)

    def seen(self, seen: Seen) -> None:
        """Say what was seen of this process."""
        self._say("seen", seen)

    def failed(self, failure: Failure) -> None:
        """Say that this process failed, which is shown to the user if it is the first."""
        self._say("failed", *failure)

    def _say(self, *said: Any) -> None:
        with suppress(OSError):
            self._connection.send(said)
            self._over.wait()
