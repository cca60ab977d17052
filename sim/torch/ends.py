"""How a PyTorch script ends that does not run to its end."""

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
    """A program ended with an exception of its own, which is the cause of this one.

    Members: ``result``, the report of what it did before; None in a process that does not report;
    ``shown``, whether the program's ``sys.excepthook`` was called with it.
    """

    result: dict | None = None
    shown = False


class ProgramStopped(KeyboardInterrupt):
    """A signal ended a program.

    Members: ``number`` of the signal; ``result``, the report of what the program did before; None
    in a process that does not report.
    """

    result: dict | None = None

    def __init__(self, error: KeyboardInterrupt | Interrupted):
        self.number = (signal.Signals[error.signal] if isinstance(error, Interrupted)
                       else signal.SIGINT)
        super().__init__(f"stopped by {self.number.name}")


def as_alone(error: BaseException) -> BaseException:
    """Return an exception without EmberNIC's frames in its traceback and those of its causes."""
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
    """Give a function after which signals wait until the block is over.

    ``torchrun`` ends the processes of a program when one has failed, also the one that reports.
    """
    with ExitStack() as stack:
        yield lambda: stack.enter_context(handling(lambda *_: None))


@contextmanager
def as_python() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt``, which scripts may catch, unless it is ignored."""
    if (threading.current_thread() is not threading.main_thread()
            or not callable(signal.getsignal(signal.SIGINT))):
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
