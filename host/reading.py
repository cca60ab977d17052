"""Opening and reading of arbitrary inputs with bounded memory and time.

A user's path may be an endless device, or a FIFO without a writer, which would block ``open``.
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

    Opening never waits: a FIFO without a writer is empty. Raises ``OSError`` if ``path`` is
    unreadable.
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
    """Raise `InputError` if ``path`` is a pipe and the caller must read it more than once.

    remedy: alternative to a file, at the end of the message.
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
    """Open the regular file ``path``, written by an earlier run, for unbuffered reading.

    Opening never waits. Raises ``FileNotFoundError`` or ``NotADirectoryError`` if it does not
    exist, and `InputError` for a FIFO, a device, a folder or an unreadable file.
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
    """Return the content of the regular file ``path``, written by an earlier run.

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
