"""Where the processes of a program are put together: one of them hears all the others."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from queue import SimpleQueue
from socket import create_connection
from time import sleep
from typing import Any, NamedTuple

import numpy as np

from sim.torch.options import TorchOptions
from sim.torch.query import Query
from sim.torch.seen import Seen
from sim.torch.served import Served, Turns
from sim.torch.session import Session

__all__ = ["Address", "Failure", "Hub", "Link", "ProcessError"]

Address = tuple[str, int, bytes]
"""Where a hub listens: host, port, and the key without which it does not."""

GRACE = 10.0
"""Seconds in which a process ends by itself after another has failed."""


class Failure(NamedTuple):
    """Why a program ended: the exit ``status``, and ``text`` in words."""

    status: int
    text: str


class ProcessError(Exception):
    """A process of the program failed, and the user was told why. ``status``: to exit with."""

    def __init__(self, status: int):
        super().__init__(f"a process of the program failed, with exit status {status}")
        self.status = status


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

    The first that fails is said in words to standard error, at once, and to all the others. With
    fidelity ``rtl`` the NICs of all processes are here.

    Parameters: ``options`` of the program.

    Members: ``address``; ``failure`` of the program, None for none; ``nics``, the session that had
    the NICs, None for none.
    """

    def __init__(self, options: TorchOptions):
        key = os.urandom(16)
        self._listener = Listener(("127.0.0.1", 0), authkey=key)
        host, port = self._listener.address
        self.address: Address = host, port, key
        self.failure: Failure | None = None
        self._changed = threading.Condition()
        self.nics: Session | None = None
        self._options, self._turns, self._serving = options, Turns(), False
        self._links: dict[Connection, str] = {}
        self._ranks: dict[int, Connection] = {}
        self._met = self._closed = False
        self._seen: list[Seen] = []
        _Thread(self._accept).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except Exception:  # not one of ours
                if self._closed:
                    self._listener.close()
                    return
                continue
            with self._changed:
                self._links[connection], self._met = "a process", True
            _Thread(self._hear, connection).start()

    def _hear(self, connection: Connection) -> None:
        """Do what a process says, until it ends."""
        over, rank = False, -1
        with suppress(EOFError, OSError):
            while not over:
                what, *said = connection.recv()
                if what == "rank":
                    rank, size = said
                    self._links[connection] = f"process {rank} of {size}"
                    self._know(rank, size, connection)
                elif what == "asked":
                    self._turns.ask(rank, *said)
                elif what == "come":
                    self._turns.come(rank, *said)
                elif what == "seen":
                    with self._changed:
                        self._seen.append(said[0])
                    over = True
                elif what == "failed":
                    self._fail(Failure(*said))
                    over = True
            with self._changed:
                connection.send("over")
        self._turns.leave(rank)
        if not over:
            self._fail(Failure(1, f"{self._links[connection]} ended before the program did"))
        with self._changed:
            del self._links[connection]
            self._changed.notify_all()

    def _know(self, rank: int, size: int, connection: Connection) -> None:
        """Serve the processes, if there are NICs, when the first is known."""
        with self._changed:
            self._ranks[rank] = connection
            if self._serving or self._options.fidelity != "rtl":
                return
            self._serving = True
        _Thread(self._serve, size).start()

    def _serve(self, size: int) -> None:
        """Let the NICs look up what processes ask for, until all have ended."""
        try:
            served = Served(self._options.of_processes(size))
            while (turn := self._turns.next(size)) is not None:
                for rank, vectors in served.look_up(turn).items():
                    with self._changed, suppress(OSError):
                        self._ranks[rank].send(vectors)
            served.session.finish()
            self.nics = served.session
        except Exception as error:
            self._fail(Failure(2 if isinstance(error, ValueError) else 1,
                               " ".join(str(error).split())))
        with self._changed:
            self._serving = False
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

    def close(self) -> None:
        """Hear no more processes."""
        self._closed = True
        with suppress(OSError):
            create_connection(self.address[:2]).close()  # so that the thread sees it

    def gathered(self, size: int) -> list[Seen]:
        """Return what each process has seen, by their ranks, when all have; after a failure nothing
        is certain.

        ``size``: how many there must be at least.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.failure is not None or (
                not self._links and not self._serving and len(self._seen) >= size))
            return sorted(self._seen, key=lambda seen: seen.rank or 0)

    def failed(self, seconds: float) -> Failure | None:
        """Return why the program failed, if it has, or does so within some ``seconds``."""
        with self._changed:
            if self._met:
                self._changed.wait_for(lambda: self.failure is not None, seconds)
            return self.failure


class Link:
    """What a process says to the hub, as one of ``size`` with a ``rank`` of its own."""

    def __init__(self, address: Address, rank: int | None, size: int):
        host, port, key = address
        self.rank, self.size = rank, size
        self._connection = Client((host, port), authkey=key)
        self._failed, self._over = threading.Event(), threading.Event()
        self._collectives, self._lock = 0, threading.Lock()
        self._answers = SimpleQueue[list[np.ndarray] | None]()
        if rank is not None:
            self._connection.send(("rank", rank, size))
        _Thread(self._hear).start()

    def _hear(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                word = self._connection.recv()
                if isinstance(word, list):
                    self._answers.put(word)
                elif word == "failed":
                    self._failed.set()
                    self._answers.put(None)
                    _Thread(self._end).start()
                else:
                    break
            self._over.set()
            return
        if not self._over.is_set():  # the hub itself has ended
            failed = self._failed.is_set()
            self._failed.set()
            self._answers.put(None)
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

    def come(self) -> None:
        """Say that this process comes to a collective of all."""
        with self._lock, suppress(OSError):
            self._collectives += 1
            self._connection.send(("come", self._collectives))

    def ask(self, queries: Sequence[Query], changed: bool) -> list[np.ndarray]:
        """Return the pooled vectors of queries, by the NICs at the hub; see
        :data:`sim.torch.query.Elsewhere`. `ProcessError` where a process has failed."""
        with self._lock, suppress(OSError):
            self._connection.send(("asked", self._collectives, queries, changed))
        answers = self._answers.get()
        if answers is None:
            raise ProcessError(1)
        return answers

    def seen(self, seen: Seen) -> None:
        """Say what was seen of this process."""
        self._say("seen", seen)

    def failed(self, failure: Failure) -> None:
        """Say that this process failed, which is shown to the user if it is the first."""
        self._say("failed", *failure)

    def _say(self, *said: Any) -> None:
        with suppress(OSError):
            with self._lock:
                self._connection.send(said)
            self._over.wait()
