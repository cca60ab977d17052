"""Checksums of sample files, which reveal files that changed in place.

A checksum takes a pass over the file. It is remembered until the file's inode, size or times
change; the change time of an inode cannot be set by users.
"""

import os
import stat
import time
from collections.abc import Callable, Mapping
from itertools import zip_longest
from pathlib import Path

import google_crc32c

from host.data.datasets import Paths, input_files
from host.data.readers.npz import counts_file
from host.errors import InputError

__all__ = ["check_contents", "contents", "know_contents", "known_contents", "states"]

_BLOCK = 1 << 20

_SETTLED_NS = 1_000_000_000
"""Nanoseconds after which a further change of a file gets another time stamp, given the file
system's clock resolution.
"""

_CHANGED = "was changed while the command read it: run the command again"

_known: dict[str, tuple[tuple[int, ...], str]] = {}
"""File state and checksum by path."""


def contents(paths: Paths) -> tuple[str, ...]:
    """Return size and CRC-32C of each file, including the counts files beside DLRM's files.

    No paths give an empty tuple. A pipe can be read only once, so its entry is size and time.
    Raises `InputError` if a file is unreadable or changes during the pass.
    """
    return tuple(map(_of_file, _files(paths)))


def check_contents(paths: Paths, before: tuple, read: Callable[[Paths], tuple] = contents) -> None:
    """Raise `InputError` unless `contents` or ``read``, such as `states`, equals ``before``."""
    for path, now, then in zip_longest(_files(paths), read(paths), before):
        if now != then:
            raise InputError(path or input_files(paths)[0], 0, 0, _CHANGED)


def states(paths: Paths) -> tuple[tuple[int, ...], ...]:
    """Return device, inode, size and times of each file of `contents`; empty for a missing file or
    a pipe. Nothing is read."""
    return tuple(_state(os.stat(file)) if file.is_file() else () for file in _files(paths))


def known_contents() -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the checksums known to this process, to pass them to another process."""
    return dict(_known)


def know_contents(known: Mapping[str, tuple[tuple[int, ...], str]]) -> None:
    """Add checksums that another process knows."""
    _known.update(known)


def _files(paths: Paths) -> list[Path]:
    files: list[Path] = []
    for file in input_files(paths) if paths else ():
        beside = counts_file(file)
        files += [file] if beside is None or not beside.is_file() else [file, beside]
    return files


def _of_file(path: Path) -> str:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return f"{found.st_size} {found.st_mtime_ns}"
        name, state = os.path.abspath(path), _state(found)
        before, text = _known.get(name, ((), ""))
        if before == state:
            return text
        begun, total = time.time_ns(), google_crc32c.Checksum()
        with open(path, "rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                total.update(block)
        if _state(os.stat(path)) != state:
            raise InputError(path, 0, 0, _CHANGED)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    text = f"{found.st_size} {total.hexdigest().decode()}"
    if begun - max(found.st_ctime_ns, found.st_mtime_ns) > _SETTLED_NS:
        _known[name] = state, text
    return text


def _state(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
