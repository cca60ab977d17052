"""Opening of files that may be anything, and atomic writing."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_at_once", "open_output", "write_whole", "written_whole"]


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write ``content``, text or bytes, to ``path`` atomically: the file is always either the old
    or the new one.

    It goes to a temporary file in the same folder, which replaces the old one when it is on the
    disk (``fsync``, then ``rename``, which POSIX makes atomic). A symbolic link is followed. What
    is not a plain file (``/dev/null``, a pipe), or lies in a read-only folder, is written in place.
    ``OSError`` names ``path``.
    """
    data = content.encode() if isinstance(content, str) else content
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file whose content takes the place of ``path`` at the end of the block, as in
    :func:`write_whole`. Where the block raises, ``path`` stays as it was."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open_output(path) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f"{_beginning(target)}{os.getpid()}.part")
        try:
            # A new file: in a folder for everybody, another user may have put a link in its place.
            part.unlink(missing_ok=True)
            file = part.open("x+b")
        except PermissionError:
            with open(target, "wb") as file:
                yield file
            return
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                part.chmod(target.stat().st_mode & 0o7777)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
        _remove_left(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def open_output(path: str | os.PathLike[str]) -> BinaryIO:
    """Open ``path`` for writing, emptied. ``OSError`` if it cannot be written, and for a FIFO that
    no process reads, whose opening would wait for ever."""
    return open(path, "wb", opener=open_at_once)


def open_at_once(path: str, flags: int) -> int:
    """Open ``path`` as an opener of :func:`open` that never waits for the other end of a FIFO.

    ``OSError`` for an output that is a FIFO that no process reads.
    """
    try:
        file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OSError(errno.ENXIO, "is a FIFO that no process reads", str(path)) from None
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(file, True)
    return file


def _remove_left(target: Path) -> None:
    """Remove the temporary files of ``target`` that killed processes left behind."""
    for part in target.parent.glob(f"{_beginning(target)}*.part"):
        if not _alive(part.name.split(".")[2]):
            with suppress(OSError):
                part.unlink()


def _beginning(target: Path) -> str:
    """Return the beginning of the names of temporary files; ``target`` may have a name as long as
    any."""
    return f".embernic-{sha256(os.fsencode(target.name)).hexdigest()[:16]}."


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError, OverflowError):
        pass  # a process, or a file, of another user
    return True


def _sync_folder(folder: Path) -> None:
    """Force the new directory entry to disk, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
