"""Tasks: what a sweep measures besides points, such as many draws that share runs of NICs."""

from abc import ABC, abstractmethod

from sim.evaluation.store import Store

__all__ = ["Task"]


class Task(ABC):
    """Work of an evaluation that is more than one point.

    A subclass is a frozen dataclass of plain values and points, which are its key in a store. A
    sweep begins tasks after all points, so that runs of NICs that both need are there.
    """

    @property
    @abstractmethod
    def dataset(self) -> str:
        """Data set of the task."""

    @property
    @abstractmethod
    def effort(self) -> float:
        """How long it takes, in samples that run through modelled NICs."""

    @abstractmethod
    def measured(self, runs: Store | None) -> dict:
        """Return its metrics as plain values, ``source`` and ``notes`` among them.

        ``runs``: keeps runs of NICs; it changes no metric.
        """

    @abstractmethod
    def in_words(self) -> str:
        """Return what it is, for people."""
