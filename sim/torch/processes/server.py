"""Where the processes of a program are put together: one of them hears all the others."""

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from sim.torch.catching.session import Session
from sim.torch.catching.threads import OwnThread
from sim.torch.options import TorchOptions
from sim.torch.processes.client import Failure, failure_of
from sim.torch.processes.key import Address, publish, withdraw
from sim.torch.processes.merge import Seen
from sim.torch.processes.messages import TO_SERVER, read, write
from sim.torch.processes.nics import Served, Turns
from sim.torch.processes.wire import HOST, AuthenticationError, Channel, MessageError, Owned, admit

__all__ = ["Gate", "Server"]

_PENDING = 64
"""Callers at most that have not proved yet that they have the key; the oldest is dropped."""


class Gate:
    """A port of the loopback interface.

    Parameters: ``admitted``, called in a thread of its own with the channel of each caller that has
    proved that it has the key.

    Members: ``address``.
    """

    def __init__(self, admitted: Callable[[Channel], None]):
        self._admitted, self._closed = admitted, False
        self._listening = Owned(socket.create_server((HOST, 0), backlog=_PENDING))
        self.address: Address = publish(self._listening.socket.getsockname()[1])
        self._pending: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        OwnThread(self._accept).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                self._listening.check()
            except OSError:
                return
            try:
                caller, _ = self._listening.socket.accept()
            except OSError:  # such as too many open files
                time.sleep(0.05)
                continue
            with self._lock:
                if len(self._pending) >= _PENDING:
                    with suppress(OSError):
                        self._pending.pop(next(iter(self._pending))).shutdown(socket.SHUT_RDWR)
                self._pending[id(caller)] = caller
            OwnThread(self._admit, caller).start()
        self._listening.close()

    def _admit(self, caller: socket.socket) -> None:
        try:
            channel = admit(caller, self.address.key)
        except (AuthenticationError, EOFError, OSError):
            caller.close()
            return
        finally:
            with self._lock:
                self._pending.pop(id(caller), None)
        self._admitted(channel)

    def close(self) -> None:
        """Admit no more callers, and remove the key file."""
        self._closed = True
        withdraw(self.address)
        with suppress(OSError):
            socket.create_connection((HOST, self.address.port), 1).close()  # wakes the thread


_MOST = 1 << 16
"""Processes of a program at most."""
_LAST_SECONDS = 10.0
"""Seconds in which a process takes the last message."""


class _Peer:
    """A process, as the server sees it. What it is sent waits in a queue: it may be slow.

    Members: ``rank``, -1 for none; ``size``; ``seen``, what it said last of itself, None for
    nothing; ``counted``, what it counted in mini-batches; ``over``, whether it has ended with a
    word.
    """

    def __init__(self, channel: Channel):
        self.channel = channel
        self.rank, self.size, self.over = -1, 1, False
        self.seen: Seen | None = None
        self.counted = Seen.counted(None, 1)
        self._queue = SimpleQueue[tuple[Any, ...] | None]()
        self._writer = OwnThread(self._write)
        self._writer.start()

    @property
    def name(self) -> str:
        return "a process" if self.rank < 0 else f"process {self.rank} of {self.size}"

    def send(self, *said: Any) -> None:
        """Send a message, later."""
        self._queue.put(said)

    def finish(self) -> None:
        """Send what waits, if the process takes it in time."""
        self._queue.put(None)
        self._writer.join(_LAST_SECONDS)

    def _write(self) -> None:
        with suppress(OSError, MessageError):
            while (said := self._queue.get()) is not None:
                write(self.channel, *said)


class Server:
    """Hears what each process has seen, or that it ended without a word.

    The first that fails is said in words to standard error, at once, and to all the others. With
    fidelity ``rtl`` the NICs of all processes are here.

    Parameters: ``options`` of the program.

    Members: ``address``; ``failure`` of the program, None for none; ``nics``, the session that had
    the NICs, None for none; ``met``, whether a process has said something; ``size``, the processes
    of the group; ``first_of_group``, whether this process has a rank itself: then the end of
    another with a rank ends the program. The end of any other process is the program's own concern.
    """

    def __init__(self, options: TorchOptions):
        self.failure: Failure | None = None
        self.nics: Session | None = None
        self.met = self.first_of_group = False
        self.size = 1
        self._changed = threading.Condition()
        self._options, self._turns, self._serving = options, Turns(), False
        self._peers: list[_Peer] = []
        self._ended: list[_Peer] = []
        self._ranks: dict[int, _Peer] = {}
        self._gate = Gate(self._hear)
        self.address = self._gate.address

    def _hear(self, channel: Channel) -> None:
        """Do what a process says, until it ends."""
        peer, malformed = _Peer(channel), ""
        with self._changed:
            self._peers.append(peer)
            self.met = True
        try:
            while not peer.over:
                what, said = read(channel, TO_SERVER)
                with self._changed:
                    self._do(peer, what, *said)
                    self._changed.notify_all()
        except (MessageError, MemoryError) as error:
            malformed = f"sent a message that cannot be read: {error}"
        except (EOFError, OSError):
            pass
        if peer.over:
            peer.send("over")
        peer.finish()
        self._turns.leave(peer.rank)
        if not peer.over:
            self._lost(peer, malformed)
        with self._changed:
            self._peers.remove(peer)
            self._ended.append(peer)
            self._changed.notify_all()
        channel.drain(_LAST_SECONDS)

    def _do(self, peer: _Peer, what: str, *said: Any) -> None:
        """Do what a message says."""
        if what == "rank":
            self._know(peer, *said)
        elif what in ("look up", "update"):
            self._turns.ask(peer.rank, *said)
        elif what == "come":
            self._turns.come(peer.rank, *said)
        elif what == "waits":
            self._turns.wait(peer.rank)
        elif what == "counted":
            peer.counted.add(*said)
        else:
            peer.over = what != "so far"
            if what == "failed":
                self._fail(Failure(*said))
            else:
                peer.seen, = said

    def _know(self, peer: _Peer, rank: int, size: int) -> None:
        """Serve the processes, if there are NICs, when the first is known."""
        if not 0 <= rank < size <= _MOST:
            raise MessageError(f"a rank must be between 0 and {size - 1}, not {rank}")
        peer.rank, peer.size = rank, size
        peer.counted = Seen.counted(rank, size)
        self._ranks[rank], self.size = peer, max(size, self.size)
        if not self._serving and self._options.fidelity == "rtl":
            self._serving = True
            OwnThread(self._serve, size).start()

    def _serve(self, size: int) -> None:
        """Let the NICs look up what processes ask for, until all have ended."""
        try:
            served = Served(self._options.of_processes(size))
            self.nics = served.session
            while (turn := self._turns.next(size)) is not None:
                for rank, vectors in served.answer(turn).items():
                    self._ranks[rank].send("answer", vectors)
            served.session.finish()
        except Exception as error:
            self._fail(failure_of(error))
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    def _lost(self, peer: _Peer, malformed: str) -> None:
        """A process has ended without a word, or has sent a ``malformed`` message."""
        text = f"{peer.name} {malformed or 'ended before the program did'}"
        if self.first_of_group and peer.rank >= 0:
            self._fail(Failure(1, text, text))
        elif malformed:
            sys.stderr.write(f"sim: {text}\n")

    def _fail(self, failure: Failure) -> None:
        with self._changed:
            if self.failure is not None:
                return
            self.failure = failure
            sys.stderr.write(failure.text if failure.text.endswith("\n") else
                             f"sim: {failure.text}\n")
            sys.stderr.flush()
            for other in self._peers:
                other.send("failed")
            self._changed.notify_all()

    def close(self) -> None:
        """Hear no more processes."""
        self._gate.close()

    def gathered(self, seconds: float) -> list[Seen]:
        """Return what each process has seen, by their ranks; after a failure nothing is certain.

        In the first process of a group it waits until the others have ended. Processes without a
        rank, and those that the program itself has begun, may outlive the program: they have some
        ``seconds`` to say what they have seen so far.
        """
        if self.first_of_group:
            self._wait(lambda: not self._serving and len(
                {peer.rank for peer in self._ended if peer.over and peer.rank >= 0}) >= self.size)
        with self._changed:
            if self.failure is not None:
                return []
        found = self.so_far(seconds)
        self._turns.end()
        self._wait(lambda: not self._serving)
        return found

    def _wait(self, met: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.failure is not None or met())

    def so_far(self, seconds: float) -> list[Seen]:
        """Return what each process has seen until now, by their ranks: of those that say so within
        some ``seconds``, and of others what they counted in mini-batches."""
        with self._changed:
            for peer in self._peers:
                if peer.seen is None:
                    peer.send("so far")
            self._changed.wait_for(
                lambda: all(peer.seen is not None for peer in self._peers), seconds)
            peers = [*self._ended, *self._peers]
            found = [peer.seen or peer.counted for peer in peers]
        found = [seen for seen in found if seen.rank is not None or seen.tables]
        return sorted(found, key=lambda seen: seen.rank or 0)

    def failed(self, seconds: float) -> Failure | None:
        """Return why the program failed, if it has, or does so within some ``seconds``."""
        with self._changed:
            if self.met:
                self._changed.wait_for(lambda: self.failure is not None, seconds)
            return self.failure
