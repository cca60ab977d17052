"""Opening and reading of inputs that may be anything: bounded in memory, and in time.

A path of a user may be a device without an end, or a FIFO that no process writes to, whose opening
would wait for ever.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from gen.base.files import open_at_once
from host.errors import InputError

__all__ = ["is_pipe", "open_input", "open_regular", "read_regular", "read_whole", "refuse_pipe"]


def open_input(path: str | Path) -> BinaryIO:
    """Open ``path`` for reading.

    Opening never waits: a FIFO that no process writes to is empty. ``OSError`` if ``path`` cannot
    be read.
    """
    return open(path, "rb", opener=open_at_once)


def is_pipe(path: str | Path) -> bool:
    """Return whether ``path`` exists and can be read only once: a pipe, a terminal, a device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode))


def refuse_pipe(path: str | Path, remedy: str = "") -> None:
    """Raise `InputError` where ``path`` is a pipe, which the caller has to read more than once.

    ``remedy``: another way out than a file, at the end of the message.
    """
    if is_pipe(path):
        raise InputError(path, 0, 0, f"is a pipe, which can be read only once: write it to a file "
                                     f"first{remedy}")


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
        file = open_at_once(path, os.O_RDONLY)
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
