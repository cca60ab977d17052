"""Key file of a server, which contains its port and its key."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import mkdtemp
from typing import NamedTuple

__all__ = ["Address", "publish", "read_address", "withdraw"]

_FIRST_LINE = "EmberNIC server 1"
_NAME = "server"
_LONGEST = 4096
"""The most bytes of a key file."""


class Address(NamedTuple):
    """Address of a server on this machine.

    path: path of its key file.
    port: TCP port on the loopback interface.
    key: 32 bytes.
    """

    path: str
    port: int
    key: bytes


def publish(port: int) -> Address:
    """Create a key for a server, and write it to a file that only this user can read.

    The file has mode 0600, in a new folder with mode 0700 and a random name.
    """
    path, key = os.path.join(mkdtemp(prefix="embernic-"), _NAME), secrets.token_bytes(32)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{_FIRST_LINE}\n{port}\n{key.hex()}\n")
    return Address(path, port, key)


def withdraw(address: Address) -> None:
    """Remove a key file and its folder."""
    with suppress(OSError):
        os.unlink(address.path)
        os.rmdir(os.path.dirname(address.path))


def read_address(path: str) -> Address:
    """Return the address in a key file.

    The path may come from a different user. Raises ``FileNotFoundError`` if the file does not
    exist, and ``ValueError`` if it is not a key file or if other users could have read or written
    it.
    """
    folder, name = os.path.split(path)
    if name != _NAME or not os.path.isabs(path) or "\0" in path:
        raise ValueError(f"the key file of a server must be an absolute path that ends in "
                         f"/{_NAME}, not {path[:200]!r}")
    with _opened(folder, getattr(os, "O_DIRECTORY", 0)) as room:
        _check(folder, room, stat.S_ISDIR, 0o700)
        with _opened(name, 0, room) as file:
            _check(path, file, stat.S_ISREG, 0o600)
            lines = os.read(file, _LONGEST).decode("ascii", "replace").split("\n")
    try:
        first, port, key, _ = lines
        if first == _FIRST_LINE and 0 < int(port) < 1 << 16 and len(bytes.fromhex(key)) == 32:
            return Address(path, int(port), bytes.fromhex(key))
    except ValueError:
        pass
    raise ValueError(f"{path} is not the key file of a server")


@contextmanager
def _opened(path: str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open a path that a different user may have named, without following links or pipes."""
    found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=folder)
    try:
        yield found
    finally:
        os.close(found)


def _check(path: str, opened: int, kind, mode: int) -> None:
    state = os.fstat(opened)
    if not kind(state.st_mode) or state.st_uid != os.getuid() or (
            stat.S_IMODE(state.st_mode) & ~mode):
        raise ValueError(f"{path} must belong to user {os.getuid()} with mode {mode:04o}, private "
                         f"to that user, not to user {state.st_uid} with mode "
                         f"{stat.S_IMODE(state.st_mode):04o}")
