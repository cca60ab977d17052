"""Early ends of a PyTorch script: exceptions and signals."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from os.path import dirname, join, realpath
from types import TracebackType

from gen.base.signals import Interrupted, handling

__all__ = ["ProgramError", "ProgramStopped", "as_alone", "as_python", "unhurried"]

_OURS = join(dirname(realpath(__file__)), "")


class ProgramError(Exception):
    """A program ended with its own exception, which is the cause of this exception.

    result: report up to the exception; None in a process that does not report.
    shown: True if the program's ``sys.excepthook`` has handled the exception.
    """

    result: dict | None = None
    shown = False


class ProgramStopped(KeyboardInterrupt):
    """A signal ended a program.

    number: number of the signal.
    result: report up to the signal; None in a process that does not report.
    """

    result: dict | None = None

    def __init__(self, error: KeyboardInterrupt | Interrupted):
        self.number = (signal.Signals[error.signal] if isinstance(error, Interrupted)
                       else signal.SIGINT)
        super().__init__(f"stopped by {self.number.name}")


def as_alone(error: BaseException) -> BaseException:
    """Remove EmberNIC's frames from the tracebacks of an exception and its causes; return it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = _of_program(each.__traceback__)
        waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return error


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) and (frames or not file.startswith("<frozen ")):
            frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        trace = TracebackType(trace, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return trace


@contextmanager
def unhurried() -> Iterator[Callable[[], object]]:
    """Yield a function that makes signals wait until the block ends.

    If a process fails, ``torchrun`` stops all other processes, including the process that reports.
    """
    with ExitStack() as stack:
        yield lambda: stack.enter_context(handling(lambda *_: None))


@contextmanager
def as_python() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt``, which scripts may catch, unless SIGINT is ignored."""
    if (threading.current_thread() is not threading.main_thread()
            or not callable(signal.getsignal(signal.SIGINT))):
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
