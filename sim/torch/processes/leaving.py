"""Calls that end a script's process without a word to Python: ``os._exit``, ``os.abort``, exec."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Leave", "command_before", "leaving"]

Leave = Callable[[str, int, bool], int]
"""Called before the process ends, with the call that ends it in words, the exit status, and whether
the same command runs a script again. Returns the exit status."""

_ABORTED = 134
"""Exit status that a shell shows for ``os.abort``."""


@contextmanager
def leaving(leave: Leave, command: Sequence[str] | None) -> Iterator[None]:
    """Call ``leave`` in this process before a call of the block ends the process.

    ``command``: the command line of this process up to the script, None where the process runs no
    script. A script that replaces itself by a script in the same Python is run by this command.

    A process that is forked from this one ends as it does alone.
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
        """Return the arguments of the program that is about to replace this one."""
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
    """Return whether a program is this Python, which runs a file."""
    return (os.path.realpath(os.fsdecode(path)) == os.path.realpath(sys.executable)
            and len(args) > 1 and not os.fsdecode(args[1]).startswith("-")
            and os.path.isfile(args[1]))


def command_before(script: str, arguments: Sequence[str]) -> list[str] | None:
    """Return the command line of this process without the ``script`` and its ``arguments`` at its
    end; None where they are not there."""
    own = [script, *arguments]
    given = sys.orig_argv
    return given[:-len(own)] if len(given) > len(own) and given[-len(own):] == own else None
