"""One try: a command in this process, bounded in time and memory, and its end."""

import contextlib
import io
import signal
from collections.abc import Callable, Iterator
from typing import NoReturn
from unittest import mock

from sim.cli.main import main
from tests.memory import memory_bounded

__all__ = ["Defect", "bounded", "command", "reached", "refusal"]

_SECONDS = 20.0
_MEMORY = 3 << 30
"""Bytes of address space beyond those in use."""


class Defect(Exception):
    """A result that no input may cause."""


class _Reached(BaseException):
    """The command was accepted, and its long work would begin."""


class _TooLong(BaseException):
    pass


def reached(*_: object, **__: object) -> NoReturn:
    """Replacement for work that takes minutes: a command that gets here accepted its input."""
    raise _Reached


_LONG = ("sim.experiments.reproduce.reproduce", "sim.serving.serve.serve", "sim.bench.bench.bench",
         "sim.faults.suite.faults")


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Bound the memory of this process in the block, and skip work that takes minutes."""
    with contextlib.ExitStack() as patches:
        for name in _LONG:
            patches.enter_context(mock.patch(name, reached))
        patches.enter_context(memory_bounded(_MEMORY))
        yield


def command(arguments: list[str], may_be_long: bool = False, may_be_large: bool = False,
            run: Callable[[list[str]], object] = main, prefix: str = "sim: ") -> str:
    """Run a command; return ``refused``, ``done``, or, with ``may_be_long``, ``long``.

    `Defect` for any other end: a traceback, several lines, no line, no end, no memory. A command
    that ``may_be_large``, such as the largest caches of modelled NICs, may report a lack of memory.
    """
    said, told = io.StringIO(), io.StringIO()

    def late(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 3.0 if may_be_long else _SECONDS)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(told):
            found = run(arguments)
        status = found if isinstance(found, int) else 0
    except SystemExit as end:
        status = end.code or 0
    except _Reached:
        return "done"
    except _TooLong:
        if may_be_long:
            return "long"
        raise Defect(f"{arguments} does not end") from None
    except BaseException as error:
        raise Defect(f"{arguments} ends with {type(error).__name__}: {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    text = said.getvalue()
    if status == 2:
        lines = text.splitlines()
        if len(lines) != 1 or not lines[0].startswith(prefix) or len(text) > 3000:
            raise Defect(f"{arguments} is refused with {text[:500]!r}")
        if not may_be_large and "memory" in text and "not enough" in text:
            raise Defect(f"{arguments} asks for too much memory")
        return "refused"
    if status not in (0, 1) or "Traceback" in text:
        raise Defect(f"{arguments} ends with status {status}: {text[:500]!r}")
    return "done"


def refusal(work: Callable[[], object], *expected: type[BaseException]) -> str:
    """Return ``refused`` if ``work`` raises one of ``expected`` with a message of one line, else
    ``done``."""
    try:
        work()
    except expected as error:
        if not str(error) or "\n" in str(error):
            raise Defect(f"says {str(error)!r}") from error
        return "refused"
    except Exception as error:
        raise Defect(f"ends with {type(error).__name__}: {error}") from error
    return "done"
