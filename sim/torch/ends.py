"""How a PyTorch script ends that does not run to its end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from gen.signals import Interrupted, handling

__all__ = ["ProgramError", "ProgramStopped", "as_python", "raised_by", "unhurried"]


class ProgramError(Exception):
    """A program ended with an exception of its own, which is the cause of this one.

    Members: ``result``, the report of what it did before; None in a process that does not report.
    """

    result: dict | None = None


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


def raised_by(error: Exception, script: str) -> Exception:
    """Return an exception with the lines of its traceback from the script's first on.

    As Python shows it: where the script has no line in it, such as one that does not parse, none.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return error.with_traceback(trace)


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
