"""A request to stop that waits for a good moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gen.signals import Interrupted, handling
from sim.files.outputs import LiveJson

__all__ = ["Stop", "kept_by", "never", "stoppable"]


class Stop:
    """Whether a signal has asked the command to stop; a second one ends it at once.

    So does the first, as long as the command has never looked here: it is then still at something
    that leaves nothing to keep, such as reading through a file.

    Members: ``status``, the exit status for the signal, None while there was none.
    """

    def __init__(self) -> None:
        self._request: Interrupted | None = None
        self._watched = False

    def __call__(self) -> str | None:
        """Return the name of the signal, or None while the command may go on."""
        self._watched = True
        return self._request and self._request.signal

    @property
    def status(self) -> int | None:
        return self._request and self._request.status

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._request is not None or not self._watched:
            raise Interrupted(number)
        self._request = Interrupted(number)


def never() -> None:
    """A stop that nobody asks for."""


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Within it, a signal (see :func:`gen.signals.handling`) is only noted in the `Stop`."""
    stop = Stop()
    with handling(stop._take):
        yield stop


@contextmanager
def kept_by(live: LiveJson, path: str | None) -> Iterator[None]:
    """Say of a command that is ended at once, within it, what its results' file ``path`` holds."""
    try:
        yield
    except Interrupted as error:
        error.add_note(f"{path} holds what was finished some seconds before" if live.written
                       else "no results were written")
        raise
