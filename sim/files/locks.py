"""Locks of output files: two processes do not write the same file at once.

The lock of an output is a file in EmberNIC's cache, named by a hash of the output's path. A killed
process loses its locks. The lock excludes other processes only, not other threads of this process.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from filelock import BaseFileLock, FileLock, Timeout

from gen.base.cache import cache_dir

__all__ = ["locked"]


@contextmanager
def locked(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Lock the output files of a command inside the block.

    outputs: files by the names of their options; ``None``, ``-`` and devices are not locked.

    ``ValueError`` for a file that another process writes. Without a writable cache, no file is
    locked.
    """
    with ExitStack() as held:
        for field, path in outputs.items():
            if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
                continue
            try:
                held.enter_context(_lock(str(path)).acquire(timeout=0))
            except Timeout:
                raise ValueError(f"{field} {path} is being written by another process: wait for "
                                 f"it, or name another file") from None
            except (OSError, ValueError):
                continue  # no writable cache
        yield


def _lock(path: str) -> BaseFileLock:
    folder = cache_dir() / "outputs"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    return FileLock(folder / f"{name}.lock", is_singleton=True, thread_local=False)
