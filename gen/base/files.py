"""Opening of files of any kind, and atomic writing."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_at_once", "open_output", "write_whole", "written_whole"]


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write ``content``, text or bytes, to ``path`` atomically.

    The function writes a temporary file in the same folder, forces it to disk (``fsync``), and
    replaces the old file (``rename``, atomic in POSIX). It follows a symbolic link. It writes in
    place if the file is not regular (``/dev/null``, a pipe) or its folder is read-only. An
    ``OSError`` contains ``path``.
    """
    data = content.encode() if isinstance(content, str) else content
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` at the end of the block, as in :func:`write_whole`. If the
    block raises an exception, ``path`` is unchanged."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open_output(path) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f"{_beginning(target)}{os.getpid()}.part")
        try:
            # Create a new file: in a shared folder, another user may have placed a link.
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
    """Open ``path`` for writing and truncate it. Raises ``OSError`` if it cannot be written, and
    for a FIFO without a reader, which would block for ever."""
    return open(path, "wb", opener=open_at_once)


def open_at_once(path: str, flags: int) -> int:
    """Open ``path`` as an opener of :func:`open` that does not wait for the other end of a FIFO.

    Raises ``OSError`` for an output FIFO without a reader.
    """
    try:
        file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OSError(errno.ENXIO, "FIFO has no reader", str(path)) from None
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(file, True)
    return file


def _remove_left(target: Path) -> None:
    """Remove the temporary files of ``target`` that killed processes left."""
    for part in target.parent.glob(f"{_beginning(target)}*.part"):
        if not _alive(part.name.split(".")[2]):
            with suppress(OSError):
                part.unlink()


def _beginning(target: Path) -> str:
    """Return the prefix of the names of temporary files. It is a hash, because ``target`` may have
    the longest possible name."""
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
