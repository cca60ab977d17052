"""Termination of a command by a signal: Ctrl-C, ``kill``, or a closed terminal."""

import _thread
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "forget_unused", "handling", "interruptible"]

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

Handler = Callable[[int, FrameType | None], None]


class Interrupted(BaseException):
    """A signal requests the end of the command.

    The class derives from neither `Exception`, which handlers catch, nor ``KeyboardInterrupt``,
    which command line libraries convert to their own status and other code may suppress.

    Members
    -------
    number, signal: number and name of the signal.
    status: exit status for the shell.
    """

    def __init__(self, number: int):
        self.number = number
        self.signal = signal.Signals(number).name
        self.status = 128 + number
        super().__init__(f"stopped by {self.signal}")


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Handle SIGINT, SIGTERM and SIGHUP with ``handler`` in the block, unless they are ignored.

    Ignored signals stay ignored, as ``nohup`` and background shells require. Outside the main
    thread, where Python allows no signal handlers, the function has no effect.

    A signal may arrive while Python runs code whose exceptions it prints and drops, such as the
    ``__del__`` of Amaranth's modules. The signal is then sent again.
    """
    before = {}
    print_dropped = sys.unraisablehook

    def dropped(found: "sys.UnraisableHookArgs") -> None:
        if isinstance(found.exc_value, Interrupted):
            # An exception raised here would be dropped again.
            left = threading.Event()
            threading.Thread(target=_send_again, args=(found.exc_value.number, left),
                             daemon=True).start()
            left.set()
        else:
            print_dropped(found)

    if threading.current_thread() is threading.main_thread():
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows has only two of them
            # None: a handler that was not installed from Python, and cannot be restored.
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    if before:
        sys.unraisablehook = dropped
    try:
        yield
    finally:
        if before and sys.unraisablehook is dropped:
            sys.unraisablehook = print_dropped
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def forget_unused() -> None:
    """Suppress Amaranth's warnings about unused modules when a command ends early.

    The setting lasts for the rest of the process.
    """
    if "amaranth.hdl" in sys.modules:
        warnings.filterwarnings("ignore", category=sys.modules["amaranth.hdl"].UnusedElaboratable)


def _send_again(number: int, left: threading.Event) -> None:
    """Send a signal to the main thread, a moment after ``left`` is set."""
    left.wait()
    time.sleep(0.001)
    _thread.interrupt_main(number)


def interruptible():
    """Return a context in which these signals raise `Interrupted` at the current statement."""
    return handling(_raise)


def _raise(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)
