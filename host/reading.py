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

__all__ = ["FIFO_SECONDS", "open_input", "read_whole"]

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
    parts, left = [], most + 1
    try:
        with open_input(path) as file:
            while left and (part := file.read(min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    if not left:
        raise InputError(path, 0, 0, f"must have at most {most:,} bytes, not more")
    return b"".join(parts)


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
