"""Opening and reading of inputs that may be anything: bounded in memory, and in time.

A path of a user may be a device without an end, or a FIFO that no process writes to, whose opening
waits for ever.
"""

import io
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO

from host.errors import InputError

__all__ = ["FIFO_SECONDS", "open_input", "open_regular", "read_regular", "read_whole"]

FIFO_SECONDS = 10.0
"""How long a FIFO may be without a writer."""

_POLL = 0.02


def open_input(path: str | Path, seconds: float | None = None) -> BinaryIO:
    """Open ``path`` for reading, unbuffered.

    A named FIFO is waited for until a process has opened it for writing, for at most ``seconds``
    (:data:`FIFO_SECONDS`); ``TimeoutError`` if none has. ``OSError`` if it cannot be read.
    """
    if not _is_fifo(path):
        return open(path, "rb", buffering=0)
    end = time.monotonic() + (FIFO_SECONDS if seconds is None else seconds)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    try:
        # Without a writer a read finds the end, with one that has not written yet it finds nothing.
        while (first := file.read(1)) == b"":
            if time.monotonic() > end:
                raise TimeoutError(0, "is a FIFO that no process writes to", str(path))
            time.sleep(_POLL)
        os.set_blocking(file.fileno(), True)
    except BaseException:
        file.close()
        raise
    return _Begun(first, file) if first else file  # type: ignore[return-value]


def read_whole(path: str | Path, most: int) -> bytes:
    """Return the content of ``path``.

    `InputError` if it cannot be read, or has more than ``most`` bytes.
    """
    try:
        with open_input(path) as file:
            return _bounded(path, file, most)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def open_regular(path: str | Path) -> BinaryIO:
    """Open the regular file ``path``, which an earlier run wrote, for reading, unbuffered.

    Opening never waits. ``FileNotFoundError`` or ``NotADirectoryError`` if nothing is there;
    `InputError` for a FIFO, a device, a folder or a file that cannot be read.
    """
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise InputError(path, 0, 0, "is not a regular file: delete it, or name another file")
    return os.fdopen(file, "rb", buffering=0)


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the content of the regular file ``path``, which an earlier run wrote.

    Raises as :func:`open_regular`, and `InputError` for a file of more than ``most`` bytes.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise _too_long(path, most)
        return _bounded(path, file, most)


def _bounded(path: str | Path, file: BinaryIO, most: int) -> bytes:
    parts, left = [], most + 1
    while left and (part := file.read(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise _too_long(path, most)
    return b"".join(parts)


def _too_long(path: str | Path, most: int) -> InputError:
    return InputError(path, 0, 0, f"must have at most {most:,} bytes, not more")


def _is_fifo(path: str | Path) -> bool:
    """Return whether ``path`` is a FIFO with a name: the pipes of a shell have had a writer."""
    try:
        return stat.S_ISFIFO(os.lstat(os.path.realpath(path)).st_mode)
    except OSError:
        return False


class _Begun(io.RawIOBase):
    """A file of which the first bytes were read."""

    def __init__(self, first: bytes, file: BinaryIO):
        self._first, self._file = first, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        if not self._first:
            return self._file.readinto(buffer)  # type: ignore[attr-defined]
        count = min(len(buffer), len(self._first))
        buffer[:count] = self._first[:count]
        self._first = self._first[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
