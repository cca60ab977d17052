"""Locks of output files: two processes do not write the same file at once.

Each is a lock on one byte of a file in EmberNIC's cache, whose place is a hash of the path. So
nothing is left beside the output, and a process that is killed holds no lock any more. A process
has a file for itself: what its own threads do is its own matter.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from gen.base.cache import cache_dir

try:
    import fcntl
except ImportError:  # a platform without such locks
    fcntl = None

__all__ = ["Locks", "locked"]

_file: list[IO[bytes]] = []
"""The file of locks, kept open: closing it would give up all locks of the process."""


class Locks:
    """Locks of files, by the names of their options; ``None``, ``-`` and devices need none.

    ``ValueError`` for a file that another process writes; then none is locked.
    """

    def __init__(self, outputs: Mapping[str, str | None]):
        self._held: list[int] = []
        for field, path in outputs.items():
            if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
                continue
            if not self._take(str(path)):
                self.release()
                raise ValueError(f"{field} {path} is being written by another process: wait for "
                                 f"it, or name another file")

    def release(self) -> None:
        """Give the locks up; a second call does nothing."""
        for place in self._held:
            _count[place] -= 1
            if not _count[place]:
                del _count[place]
                fcntl.lockf(_lock_file(), fcntl.LOCK_UN, 1, place)  # type: ignore[union-attr]
        self._held.clear()

    def _take(self, path: str) -> bool:
        if fcntl is None:
            return True
        name = os.fsencode(os.path.realpath(path))
        place = int.from_bytes(hashlib.sha256(name).digest()[:7], "little")
        if place not in _count:
            try:
                file = _lock_file()
            except (OSError, ValueError):  # no cache here: what needs none is done without
                return True
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError as error:
                return error.errno not in (errno.EACCES, errno.EAGAIN)
        _count[place] = _count.get(place, 0) + 1
        self._held.append(place)
        return True


_count: dict[int, int] = {}
"""How often this process locks each place."""


@contextmanager
def locked(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Hold `Locks` of ``outputs`` inside the block."""
    locks = Locks(outputs)
    try:
        yield
    finally:
        locks.release()


def _lock_file() -> IO[bytes]:
    if not _file:
        _file.append(open(cache_dir() / "files.lock", "a+b"))  # noqa: SIM115
    return _file[0]
