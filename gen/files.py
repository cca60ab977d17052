"""Files that appear whole or not at all."""

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` so that, whatever happens, the file is the old or the new one.

    The text goes to a file beside it that takes its place when it is on the disk (``fsync``, then
    ``rename``, which POSIX makes atomic). A link keeps pointing where it points. What is not a
    plain file (``/dev/null``, a pipe), or lies in a folder that takes no new file, is written in
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
    """Put the new name itself on the disk, where the system can."""
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
