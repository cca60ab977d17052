"""Where the processes of a program are put together: one of them hears all the others."""

import os
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from socket import create_connection

from sim.torch.catching.session import Session
from sim.torch.options import TorchOptions
from sim.torch.processes.link import Address, Failure, OwnThread, failure_of
from sim.torch.processes.seen import Seen
from sim.torch.processes.served import Served, Turns

__all__ = ["Hub"]


class Hub:
    """Hears what each process has seen, or that it ended without a word.

    The first that fails is said in words to standard error, at once, and to all the others. With
    fidelity ``rtl`` the NICs of all processes are here.

    Parameters: ``options`` of the program.

    Members: ``address``; ``failure`` of the program, None for none; ``nics``, the session that had
    the NICs, None for none; ``met``, whether a process has said something; ``size``, the processes
    of the group.
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
        self.met = self._closed = False
        self._seen: list[Seen] = []
        self._so_far: dict[Connection, Seen] = {}
        self._counted: dict[Connection, Seen] = {}
        self.size = 1
        OwnThread(self._accept).start()

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
                self._links[connection], self.met = "a process", True
            OwnThread(self._hear, connection).start()

    def _hear(self, connection: Connection) -> None:
        """Do what a process says, until it ends."""
        over, rank, size = False, -1, 1
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
                elif what == "waits":
                    self._turns.wait(rank)
                elif what == "counted":
                    with self._changed:
                        if connection not in self._counted:
                            self._counted[connection] = Seen.counted(rank, size)
                        self._counted[connection].add(said[0])
                elif what == "so far":
                    with self._changed:
                        self._so_far[connection] = said[0]
                        self._changed.notify_all()
                elif what == "seen":
                    with self._changed:
                        self._seen.append(said[0])
                        self._counted.pop(connection, None)
                    over = True
                elif what == "failed":
                    self._fail(Failure(*said))
                    over = True
            with self._changed:
                connection.send("over")
        self._turns.leave(rank)
        if not over:
            text = f"{self._links[connection]} ended before the program did"
            self._fail(Failure(1, text, text))
        with self._changed:
            del self._links[connection]
            self._changed.notify_all()

    def _know(self, rank: int, size: int, connection: Connection) -> None:
        """Serve the processes, if there are NICs, when the first is known."""
        with self._changed:
            self._ranks[rank], self.size = connection, max(size, self.size)
            if self._serving or self._options.fidelity != "rtl":
                return
            self._serving = True
        OwnThread(self._serve, size).start()

    def _serve(self, size: int) -> None:
        """Let the NICs look up what processes ask for, until all have ended."""
        try:
            served = Served(self._options.of_processes(size))
            self.nics = served.session
            while (turn := self._turns.next(size)) is not None:
                for rank, vectors in served.answer(turn).items():
                    with self._changed, suppress(OSError):
                        self._ranks[rank].send(vectors)
            served.session.finish()
        except Exception as error:
            self._fail(failure_of(error))
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

    def so_far(self, seconds: float) -> list[Seen]:
        """Return what each process has seen until now, by their ranks: of those that say so within
        some ``seconds``, and of others with a rank what they counted in mini-batches."""
        with self._changed:
            for other in self._links:
                if other not in self._so_far:
                    with suppress(OSError):
                        other.send("so far")
            self._changed.wait_for(lambda: all(each in self._so_far for each in self._links),
                                   seconds)
            said = [*self._seen, *self._so_far.values()]
            said += [counted for connection, counted in self._counted.items()
                     if connection not in self._so_far and counted.rank != -1]
            return sorted(said, key=lambda seen: seen.rank or 0)

    def failed(self, seconds: float) -> Failure | None:
        """Return why the program failed, if it has, or does so within some ``seconds``."""
        with self._changed:
            if self.met:
                self._changed.wait_for(lambda: self.failure is not None, seconds)
            return self.failure
