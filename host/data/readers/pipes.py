"""Files that can be read only once: pipes, terminals and other devices.

A file on a disk is opened as often as it is needed. What came out of a pipe is gone, so that what
was looked at to guess a format has to be handed on to whoever reads the samples. Here a pipe is
opened once and known, by its inode, until it is read:

=====================  =============================================================================
`look`                 returns its first bytes, which stay to be read
`opened` with `keep`   reads all of it, into a temporary file of at most `SPOOL_BYTES`, which stays
                       to be read again
`opened`               hands out all of it, and then knows nothing of it any more
=====================  =============================================================================

The last of these keeps nothing: a pipe of any length is read in bounded memory. With ``seek`` it
goes through the temporary file too.
"""

import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from host.errors import InputError
from host.reading import open_input

__all__ = ["SPOOL_BYTES", "forget", "is_pipe", "look", "opened"]

SPOOL_BYTES = 1 << 30
"""Of a pipe's content that is kept because it is read more than once."""

_BLOCK = 1 << 16


class _Pipe(io.RawIOBase):
    """A pipe, read from its beginning: first what was looked at, then what is left."""

    def __init__(self, path: Path):
        self._raw = open_input(path)
        self._head = b""
        self._at = 0
        self.spool: BinaryIO | None = None

    def look(self, size: int) -> bytes:
        """Return the first ``size`` bytes, fewer where there are no more."""
        if self.spool is not None:
            self.spool.seek(0)
            return self.spool.read(size)
        while len(self._head) < size:
            block = self._raw.read(size - len(self._head))
            if not block:
                break
            self._head += block
        return self._head[:size]

    def keep(self, path: Path) -> BinaryIO:
        """Return a file of the whole content, at its beginning."""
        if self.spool is None:
            if stat.S_ISCHR(os.stat(path).st_mode) and not self._raw.isatty():
                raise InputError(path, 0, 0, "must be a file or a pipe, not a device")
            self.look(_BLOCK)  # for a guess of the format that is made after all was read
            spool = tempfile.TemporaryFile()  # noqa: SIM115
            try:
                while block := self.read(_BLOCK):
                    if spool.tell() + len(block) > SPOOL_BYTES:
                        raise InputError(path, 0, 0, (
                            f"is a pipe, which can be read only once, of more than {SPOOL_BYTES:,} "
                            f"bytes, which are too many to keep for a second time; write it to a "
                            f"file first"))
                    spool.write(block)
            except BaseException:
                spool.close()
                raise
            self.spool = spool  # type: ignore[assignment]
        self.spool.seek(0)  # type: ignore[union-attr]
        return self.spool  # type: ignore[return-value]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        if self._at == len(self._head):
            return self._raw.readinto(buffer)  # type: ignore[attr-defined]
        part = self._head[self._at:self._at + len(buffer)]
        buffer[:len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            if self.spool is not None:
                self.spool.close()
        super().close()


_known: dict[tuple[int, int], _Pipe] = {}
"""Pipes that were looked at or kept, and not read yet, by device and inode."""


def is_pipe(path: str | Path) -> bool:
    """Return whether ``path`` is there and can be read only once."""
    return _inode(path) is not None


def look(path: str | Path, size: int) -> bytes:
    """Return the first ``size`` bytes of a file or pipe, fewer where there are no more.

    ``OSError`` where it cannot be read.
    """
    inode = _inode(path)
    if inode is not None:
        return _pipe(Path(path), inode).look(size)
    with Path(path).open("rb") as file:
        return file.read(size)


@contextmanager
def opened(path: str | Path, *, keep: bool = False, seek: bool = False) -> Iterator[BinaryIO]:
    """Open a file or pipe at its beginning.

    Parameters
    ----------
    keep: of a pipe, whether it will be opened again; what is not kept is closed behind this.
    seek: whether the reader goes back and forth in it.

    Raises
    ------
    OSError
        It cannot be read.
    InputError
        A pipe has too much to be kept.
    """
    path = Path(path)
    inode = _inode(path)
    if inode is None:
        with path.open("rb") as file:
            yield file
        return
    pipe = _pipe(path, inode)
    if not keep:
        del _known[inode]
    try:
        if keep or seek or pipe.spool is not None:
            yield pipe.keep(path)
        else:
            yield io.BufferedReader(pipe, _BLOCK)
    finally:
        if not keep:
            pipe.close()


def forget(path: str | Path) -> None:
    """Close a pipe that was looked at or kept and will not be read; does nothing for any other."""
    inode = _inode(path)
    if inode in _known:
        _known.pop(inode).close()


def _pipe(path: Path, inode: tuple[int, int]) -> _Pipe:
    if inode not in _known:
        _known[inode] = _Pipe(path)
    return _known[inode]


def _inode(path: str | Path) -> tuple[int, int] | None:
    """Return device and inode of a pipe; None of a file, a folder, or what is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        return None
    return found.st_dev, found.st_ino
