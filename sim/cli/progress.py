"""Progress of work that counts samples and may not know how many there are."""

from types import TracebackType

from rich.console import Console

__all__ = ["SampleCount"]

_FIRST = 1 << 14


class SampleCount:
    """Shows how many samples were read: in place on a terminal, else a line at every doubling.

    Called with the samples done; used in a ``with`` statement. Short work prints no line.
    """

    def __init__(self, console: Console):
        self._console = console
        self._status = console.status("reading samples")
        self._next = _FIRST

    def __enter__(self) -> "SampleCount":
        self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._status.stop()

    def __call__(self, done: int) -> None:
        if self._console.is_terminal:
            self._status.update(f"{done:,} samples")
        elif done >= self._next:
            self._console.print(f"{done:,} samples", highlight=False)
            while self._next <= done:
                self._next *= 2
