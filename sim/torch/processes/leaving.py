"""Ends of a script's process that Python does not tell it of: ``os._exit``, ``os.abort``, exec."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Leave", "again", "leaving"]

Leave = Callable[[str, int], None]
"""Called in the process before it ends, with the call that ends it in words, and the exit status.
"""


@contextmanager
def leaving(leave: Leave, command: Sequence[str] | None = None) -> Iterator[None]:
    """Call ``leave`` in this process before a call of the block ends it without a word to Python.

    ``command``: the command line that ran the script, with its options and without the script; None
    where there is no such command line. A script that replaces itself by another run of a script in
    the same Python is run by that command again.

    Processes that are forked from this one end as ever.
    """
    own, ends = os.getpid(), (os._exit, os.abort, os.execv, os.execve)
    exit_, abort, execv, execve = ends

    def in_own(what: str, status: int) -> None:
        if os.getpid() == own:
            leave(what, status)

    def _exit(status: int) -> None:
        in_own(f"os._exit({status})", status & 0xFF)
        exit_(status)

    def _abort() -> None:
        in_own("os.abort()", 134)
        abort()

    def _execv(path: Any, args: Any) -> None:
        _checked(path, args)
        in_own(f"exec of {os.fsdecode(path)}", 0)
        execv(path, again(path, args, command) if os.getpid() == own else args)

    def _execve(path: Any, args: Any, env: Any) -> None:
        _checked(path, args)
        in_own(f"exec of {path if isinstance(path, int) else os.fsdecode(path)}", 0)
        execve(path, again(path, args, command) if os.getpid() == own else args, env)

    os._exit, os.abort, os.execv, os.execve = _exit, _abort, _execv, _execve  # type: ignore
    try:
        yield
    finally:
        os._exit, os.abort, os.execv, os.execve = ends
