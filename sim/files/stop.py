"""A stop request by signal, which the command obeys at its next safe point."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gen.base.signals import Interrupted, handling
from sim.files.outputs import LiveJson

__all__ = ["Stop", "never", "note_kept_results", "stoppable"]


class Stop:
    """Whether a signal has asked the command to stop. A second signal ends the command at once.

    The first signal also ends the command at once if the command has not polled this object yet: it
    then has no results to save.

    Members: ``status``, the exit status for the signal, None before a signal.
    """

    def __init__(self) -> None:
        self._request: Interrupted | None = None
        self._watched = False

    def __call__(self) -> str | None:
        """Return the name of the signal, or None while the command may continue."""
        self._watched = True
        return self._request and self._request.signal

    @property
    def status(self) -> int | None:
        return self._request and self._request.status

    def _record(self, number: int, _: FrameType | None) -> None:
        if self._request is not None or not self._watched:
            raise Interrupted(number)
        self._request = Interrupted(number)


def never() -> None:
    """A stop request that never arrives."""


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Record signals (see :func:`gen.base.signals.handling`) in a `Stop` inside this context."""
    stop = Stop()
    with handling(stop._record):
        yield stop


@contextmanager
def note_kept_results(live: LiveJson, path: str | None) -> Iterator[None]:
    """On an interrupt inside this context, note which results the file ``path`` contains."""
    try:
        yield
    except Interrupted as error:
        error.add_note(f"{path} contains the results up to a few seconds ago" if live.written
                       else "no results were written")
        raise
