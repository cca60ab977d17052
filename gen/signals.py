"""What a command does when it is asked to end: Ctrl-C, ``kill``, a terminal that closes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "handling", "interruptible"]

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

Handler = Callable[[int, FrameType | None], None]


class Interrupted(BaseException):
    """A signal asks the command to end; not an `Exception`, so that nothing takes it for a mistake.

    Nor is it a ``KeyboardInterrupt``, which libraries of command lines turn into a status of their
    own and the code below into nothing.

    Members: ``signal``, the signal's name; ``status``, the exit status that shells know it by.
    """

    def __init__(self, number: int):
        self.signal = signal.Signals(number).name
        self.status = 128 + number
        super().__init__(f"stopped by {self.signal}")


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Let ``handler`` take SIGINT, SIGTERM and SIGHUP for a while, but none that is ignored.

    A signal that is ignored stays so: ``nohup`` and shells in the background ask for that. Outside
    the main thread, where Python lets nobody handle signals, this does nothing.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows knows two of them
            # None: a handler that was not set from Python, and cannot be put back.
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def interruptible():
    """Return a context in which these signals raise `Interrupted` where the program is."""
    return handling(_raise)


def _raise(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)
