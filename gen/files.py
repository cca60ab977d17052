"""Atomic writing of files."""

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` atomically: the file is always either the old or the new one.

    The text goes to a temporary file in the same folder, which replaces the old one when it is on
    the disk (``fsync``, then ``rename``, which POSIX makes atomic). A symbolic link is followed.
    What is not a plain file (``/dev/null``, a pipe), or lies in a read-only folder, is written in
    place. ``OSError`` names ``path``.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            Path(path).write_text(text, encoding="utf-8", newline="\n")
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            file = open(part, "w", encoding="utf-8", newline="\n")  # noqa: SIM115
        except PermissionError:
            target.write_text(text, encoding="utf-8", newline="\n")
            return
        try:
            with file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                part.chmod(target.stat().st_mode & 0o7777)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _sync_folder(folder: Path) -> None:
    """Force the new directory entry to disk, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
