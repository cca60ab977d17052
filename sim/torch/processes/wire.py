"""Messages between the processes of a program, in a fixed format, after authentication.

A message is a prefix, a JSON text and the bytes of numpy arrays. No message content is executed.
"""

import hmac
import json
import math
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sim.torch.catching.threads import on_fork
from sim.torch.processes.key import Address

__all__ = ["HANDSHAKE_SECONDS", "HOST", "AuthenticationError", "Channel", "MessageError", "Owned",
           "admit", "connect"]

HOST = "127.0.0.1"
HANDSHAKE_SECONDS = 30.0
"""Seconds that a caller gets to prove that it has the key."""
_CONNECT_SECONDS = 60.0

_HELLO = b"EmberNIC server 1\n"
_NONCE = 32
_PROOF = 32
_PREFIX = struct.Struct("<IIQ")
"""Magic number; bytes of the JSON text; bytes of all arrays."""
_MAGIC = 0x314E4245
_TEXT = 1 << 30
"""The most bytes of a JSON text: the counts of some millions of mini-batches."""
_ARRAYS = 1 << 36
"""The most bytes of the arrays of a message."""
_CHUNK = 1 << 20
"""Bytes per receive call. Memory grows with received bytes, not with announced bytes."""
_DTYPES = ("<i8", "<f4", "<f8", "<i4", "|b1")


class AuthenticationError(Exception):
    """The peer of a connection does not have the key."""


class MessageError(ValueError):
    """A message violates the format."""


class Owned:
    """A socket whose file descriptor the program may close and reuse.

    socket: member; the socket.
    """

    def __init__(self, opened: socket.socket):
        self.socket, self._identity = opened, self._now(opened)
        on_fork(self)

    @staticmethod
    def _now(opened: socket.socket) -> tuple[int, int]:
        state = os.fstat(opened.fileno())
        return state.st_dev, state.st_ino

    def check(self) -> None:
        """Raise ``OSError`` if the program has closed the descriptor."""
        if self.socket.fileno() != -1:
            try:
                same = self._now(self.socket) == self._identity
            except OSError:
                same = False
            if same:
                return
            self.socket.detach()  # the program reuses the number
        raise OSError("the program has closed a descriptor of the connection")

    def close(self) -> None:
        """Close the socket, unless the program has closed it."""
        try:
            self.check()
        except OSError:
            return
        self.socket.close()

    def forked(self) -> None:
        """Close the copy in a forked process."""
        self.close()


class Channel(Owned):
    """A connection between two authenticated sides."""

    def __init__(self, opened: socket.socket):
        super().__init__(opened)
        self._lock = threading.Lock()

    def send(self, said: Any, arrays: Sequence[np.ndarray] = ()) -> None:
        """Send plain values and arrays.

        Raises ``MessageError`` for a message that exceeds the bounds.
        """
        shapes = [[each.dtype.str, each.shape] for each in arrays]
        text = json.dumps({"said": said, "arrays": shapes}, separators=(",", ":")).encode()
        size = sum(each.nbytes for each in arrays)
        _check_bounds(len(text), size)
        with self._lock:
            self.check()
            self.socket.sendall(_PREFIX.pack(_MAGIC, len(text), size) + text)
            for each in arrays:
                if each.nbytes:
                    self.socket.sendall(np.ascontiguousarray(each).reshape(-1).view(np.uint8))

    def receive(self) -> tuple[Any, list[np.ndarray]]:
        """Return the plain values and arrays of the next message.

        Raises ``EOFError`` or ``OSError`` at the end of the connection, ``MessageError`` for bytes
        that are not a message.
        """
        magic, length, size = _PREFIX.unpack(self._exactly(_PREFIX.size))
        if magic != _MAGIC:
            raise MessageError(f"a message must begin with {_MAGIC:#x}, not {magic:#x}")
        _check_bounds(length, size)
        try:
            head = json.loads(self._exactly(length))
            shapes = [(np.dtype(_DTYPES[_DTYPES.index(dtype)]), tuple(map(_index, shape)))
                      for dtype, shape in head["arrays"]]
            said = head["said"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MessageError(f"the text of a message is malformed: {error}") from None
        sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in shapes]
        if sum(sizes) != size:
            raise MessageError(f"the arrays of a message must have {size} bytes, not {sum(sizes)}")
        return said, [np.frombuffer(self._exactly(count), dtype).reshape(shape)
                      for (dtype, shape), count in zip(shapes, sizes)]

    def drain(self, seconds: float) -> None:
        """Close the connection after the peer, or after ``seconds``.

        Unread bytes of the peer would otherwise destroy the last message on its way.
        """
        with suppress(OSError):
            self.check()
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(seconds)
            while self.socket.recv(_CHUNK):
                pass
        self.close()

    def _exactly(self, count: int) -> bytearray:
        return _exactly(self, count)


def _check_bounds(text: int, arrays: int) -> None:
    for name, size, most in (("text", text, _TEXT), ("arrays", arrays, _ARRAYS)):
        if size > most:
            raise MessageError(f"the {name} of a message must have at most {most} bytes, "
                               f"not {size}")


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 40:
        raise ValueError(f"a dimension must be between 0 and 2^40, not {value!r}")
    return value


def _exactly(owned: Owned, count: int, deadline: float | None = None) -> bytearray:
    """Return the next ``count`` bytes.

    Raises ``TimeoutError`` at a ``deadline`` of the monotonic clock, ``EOFError`` if the connection
    ends.
    """
    found = bytearray()
    while len(found) < count:
        owned.check()
        if deadline is not None:
            owned.socket.settimeout(max(deadline - time.monotonic(), 1e-3))
        part = owned.socket.recv(min(count - len(found), _CHUNK))
        if not part:
            raise EOFError("the connection has ended")
        found += part
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError("a caller is too slow")
    return found


def _proof(key: bytes, side: bytes, nonces: bytes) -> bytes:
    return hmac.digest(key, side + nonces, "sha256")


def admit(opened: socket.socket, key: bytes) -> Channel:
    """Return the channel of an authenticated caller.

    Raises `AuthenticationError`, ``TimeoutError``, ``EOFError`` or ``OSError`` for any other
    caller.
    """
    channel, deadline = Channel(opened), time.monotonic() + HANDSHAKE_SECONDS
    mine = secrets.token_bytes(_NONCE)
    opened.settimeout(HANDSHAKE_SECONDS)
    opened.sendall(_HELLO + mine)
    found = bytes(_exactly(channel, _NONCE + _PROOF, deadline))
    nonces = mine + found[:_NONCE]
    if not hmac.compare_digest(found[_NONCE:], _proof(key, b"caller", nonces)):
        raise AuthenticationError("a caller does not have the key of the server")
    opened.sendall(_proof(key, b"server", nonces))
    opened.settimeout(None)
    return channel


def connect(address: Address) -> Channel:
    """Return a channel to a server.

    Retries, because the server may drop a caller when other users call it. Raises
    `AuthenticationError` if the server does not have the key, and ``OSError`` if it does not
    answer.
    """
    deadline = time.monotonic() + _CONNECT_SECONDS
    while True:
        opened = None
        try:
            opened = socket.create_connection((HOST, address.port),
                                              max(deadline - time.monotonic(), 1e-3))
            return _introduced(Channel(opened), address.key, deadline)
        except AuthenticationError:
            raise
        except ConnectionRefusedError:
            raise
        except (OSError, EOFError):
            if time.monotonic() > deadline:
                raise ConnectionError(f"the server at port {address.port} does not answer"
                                      ) from None
            time.sleep(0.05)


def _introduced(channel: Channel, key: bytes, deadline: float) -> Channel:
    try:
        found = bytes(_exactly(channel, len(_HELLO) + _NONCE, deadline))
        if found[:len(_HELLO)] != _HELLO:
            raise AuthenticationError("the port belongs to a different program than the server")
        nonces = found[len(_HELLO):] + secrets.token_bytes(_NONCE)
        channel.socket.sendall(nonces[_NONCE:] + _proof(key, b"caller", nonces))
        proof = bytes(_exactly(channel, _PROOF, deadline))
        if not hmac.compare_digest(proof, _proof(key, b"server", nonces)):
            raise AuthenticationError("the server does not have the key")
    except BaseException:
        channel.close()
        raise
    channel.socket.settimeout(None)
    return channel
