"""Commands that end early: killed at any of their file operations, or with a full disk.

A command runs in a fork of the test, which has loaded all modules. In the fork, a hook of Python's
audit events counts operations that open, rename, create and remove files below a folder. At the
requested event, the process kills itself as ``kill -9`` would.
"""

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["Ended", "ended"]

_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.chmod")


class Ended:
    """End of a command: ``status`` (None if it was killed), and its lines of output in ``said``."""

    def __init__(self, status: int | None, said: str):
        self.status, self.said = status, said

    def __repr__(self) -> str:
        return f"Ended({self.status}, {self.said!r})"


def ended(work: Callable[[], object], folder: Path, *, event: int | None = None,
          largest: int | None = None, seconds: float | None = None) -> Ended:
    """Run ``work`` in a process of its own.

    Parameters
    ----------
    folder: folder whose file operations count.
    event: file operation, from 1, before which the process is killed.
    largest: most bytes of a file, to simulate a full disk.
    seconds: time after which the process is killed.
    """
    ours, its = os.pipe()
    child = os.fork()
    if not child:
        os._exit(_child(work, folder, its, event, largest, seconds))
    os.close(its)
    with open(ours, encoding="utf-8", errors="replace") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (-signal.SIGKILL, 0, 1, 2), (code, said)
    return Ended(None if code < 0 else code, said)


def _child(work: Callable[[], object], folder: Path, said: int, event: int | None,
           largest: int | None, seconds: float | None) -> int:
    os.dup2(said, 2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    # pytest's capture has replaced them.
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    if largest is not None:
        # Python keeps a module's bytecode even if only a part of it could be written.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if seconds is not None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    if event is not None:
        sys.addaudithook(_killer(str(folder), event))
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
    return status


def _killer(folder: str, event: int) -> Callable[[str, tuple], None]:
    left = event

    def hook(name: str, given: tuple) -> None:
        nonlocal left
        if name not in _EVENTS or not given or not str(given[0]).startswith(folder):
            return
        if name == "open" and not (isinstance(given[2], int) and given[2] & (
                os.O_WRONLY | os.O_RDWR)):
            return
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook
