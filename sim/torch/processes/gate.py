"""The port of a hub: admits callers that have its key, and holds up none of them for another."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sim.torch.processes.key import Address, publish, withdraw
from sim.torch.processes.own_thread import OwnThread
from sim.torch.processes.wire import HOST, AuthenticationError, Channel, Owned, admit

__all__ = ["Gate"]

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
