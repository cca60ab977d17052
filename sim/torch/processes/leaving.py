"""Calls that end a script's process without Python's cleanup: ``os._exit``, ``os.abort``, exec."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Leave", "command_before", "leaving"]

Leave = Callable[[str, int, bool], int]
"""Callback before the process ends. Its arguments are the call in words, the exit status, and True
if the same command runs a new script. It returns the exit status."""

_ABORTED = 134
"""Exit status that a shell shows for ``os.abort``."""


@contextmanager
def leaving(leave: Leave, command: Sequence[str] | None) -> Iterator[None]:
    """Call ``leave`` in this process before a call in the block ends the process.

    command: command line of this process up to the script; None if the process runs no script. If a
    script replaces itself by a script of the same Python, this command runs the new script.

    Processes that are forked from this process end without the callback.
    """
    own, before = os.getpid(), (os._exit, os.abort, os.execv, os.execve)
    really_exit, really_abort, really_execv, really_execve = before

    def exit_(status: int) -> None:
        really_exit(leave(f"os._exit({status})", status, False) if os.getpid() == own else status)

    def abort() -> None:
        if os.getpid() == own:
            leave("os.abort()", _ABORTED, False)
        really_abort()

    def replaced(path: Any, args: Any) -> Any:
        """Return the arguments of the program that is about to replace this process."""
        if os.getpid() != own or isinstance(path, int) or not os.access(path, os.X_OK):
            return args
        given = [*command, *args[1:]] if command and _runs_script(path, args) else None
        leave(f"exec of {os.fsdecode(path)}", 0, given is not None)
        return given or args

    def execv(path: Any, args: Any) -> None:
        really_execv(path, replaced(path, args))

    def execve(path: Any, args: Any, env: Any) -> None:
        really_execve(path, replaced(path, args), env)

    vars(os).update(_exit=exit_, abort=abort, execv=execv, execve=execve)
    try:
        yield
    finally:
        os._exit, os.abort, os.execv, os.execve = before


def _runs_script(path: Any, args: Sequence[Any]) -> bool:
    """Return True if a command runs a file with this Python."""
    return (os.path.realpath(os.fsdecode(path)) == os.path.realpath(sys.executable)
            and len(args) > 1 and not os.fsdecode(args[1]).startswith("-")
            and os.path.isfile(args[1]))


def command_before(script: str, arguments: Sequence[str]) -> list[str] | None:
    """Return the command line of this process up to the script; None if it does not end in the
    ``script`` and its ``arguments``."""
    own = [script, *arguments]
    given = sys.orig_argv
    return given[:-len(own)] if len(given) > len(own) and given[-len(own):] == own else None
