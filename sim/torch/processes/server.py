"""Server that collects the observations of a program's processes."""

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
"""The most callers without authentication; a further caller displaces the oldest."""


class Gate:
    """A port of the loopback interface.

    admitted: called in a separate thread with the channel of each authenticated caller.
    address: member; address of the port.
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
        """Reject further callers, and remove the key file."""
        self._closed = True
        withdraw(self.address)
        with suppress(OSError):
            socket.create_connection((HOST, self.address.port), 1).close()  # wakes the thread


_MOST = 1 << 16
"""The most processes of a program."""
_LAST_SECONDS = 10.0
"""Seconds that a process gets to receive the last message."""


class _Peer:
    """A process, as the server sees it. Messages wait in a queue, because the process may be slow.

    rank: rank of the process; -1 without a rank.
    size: number of processes.
    seen: latest observations from the process; None before the first.
    counted: counts of its mini-batches.
    over: True after its final message.
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
        """Queue a message."""
        self._queue.put(said)

    def finish(self) -> None:
        """Send queued messages, if the process receives them in time."""
        self._queue.put(None)
        self._writer.join(_LAST_SECONDS)

    def _write(self) -> None:
        with suppress(OSError, MessageError):
            while (said := self._queue.get()) is not None:
                write(self.channel, *said)


class Server:
    """Server that collects the observations of each process, and notices lost processes.

    The first failure is printed to standard error and sent to all processes. With fidelity ``rtl``,
    the server owns the NICs of all processes.

    options: options of the program.

    Members
    -------
    address: address of the server.
    failure: failure of the program; None if there is none.
    nics: session with the NICs; None without NICs.
    met: True if a process has connected.
    size: number of processes in the group.
    first_of_group: True if this process has a rank. The loss of a process with a rank then ends the
        program; the program itself handles the end of any other process.
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
        """Handle the messages of a process until it ends."""
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
        """Handle a message."""
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
        """Register a process; start the NICs for the first."""
        if not 0 <= rank < size <= _MOST:
            raise MessageError(f"a rank must be between 0 and {size - 1}, not {rank}")
        peer.rank, peer.size = rank, size
        peer.counted = Seen.counted(rank, size)
        self._ranks[rank], self.size = peer, max(size, self.size)
        if not self._serving and self._options.fidelity == "rtl":
            self._serving = True
            OwnThread(self._serve, size).start()

    def _serve(self, size: int) -> None:
        """Let the NICs answer requests until all processes have ended."""
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
        """Handle a process that ended without a final message or sent a ``malformed`` message."""
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
        """Accept no more processes."""
        self._gate.close()

    def gathered(self, seconds: float) -> list[Seen]:
        """Return the observations of each process, by rank; empty after a failure.

        In rank 0 of a group, wait until the other ranks have ended. Processes without a rank may
        outlive the program; they get ``seconds`` to send their observations.
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
        """Return the observations of each process so far, by rank.

        Processes that do not answer within ``seconds`` are represented by their counts.
        """
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
        """Return the failure of the program if it occurs within ``seconds``."""
        with self._changed:
            if self.met:
                self._changed.wait_for(lambda: self.failure is not None, seconds)
            return self.failure
