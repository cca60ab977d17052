"""Bags of a step that repeat: each distinct bag is sent once, and stands for all equal bags."""

from dataclasses import dataclass

import numpy as np

from host.batching.repeats import first_bags
from host.samples import Samples

__all__ = ["RepeatCounts", "Repeats", "new_bags"]


def new_bags(samples: Samples, nodes: int, found: str) -> np.ndarray | None:
    """Return whether each bag repeats no bag: bool ``[samples, tables]``; None if repeats are sent.

    The parameters are those of :func:`host.batching.repeats.first_bags`.
    """
    return None if found == "send" else Repeats.of(samples, nodes, found).new


@dataclass(frozen=True)
class RepeatCounts:
    """Non-empty bags of steps, and lookups of these bags.

    Members: ``bags``; ``repeated``, bags that repeat another bag; ``lookups``;
        ``repeated_lookups``.
    """

    bags: int = 0
    repeated: int = 0
    lookups: int = 0
    repeated_lookups: int = 0

    def __add__(self, other: "RepeatCounts") -> "RepeatCounts":
        return RepeatCounts(*(mine + its for mine, its in zip(
            vars(self).values(), vars(other).values())))


@dataclass(frozen=True, eq=False)
class Repeats:
    """The repeated bags of a step, and the errors of its distinct bags.

    Members
    -------
    first: sample of the step whose bag stands for each bag: int64 ``[samples, tables]``, see
        :func:`host.batching.repeats.first_bags`.
    new: whether each bag stands for itself: bool ``[samples, tables]``.
    errors: status of each new bag, 0 for success: int64 ``[samples, tables]``.
    """

    first: np.ndarray
    new: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, samples: Samples, nodes: int, found: str) -> "Repeats":
        """Find the repeats in each of ``nodes`` shares; ``found``: one of
        `host.batching.repeats.REPEATS`."""
        first = first_bags(samples, nodes, found)
        new = first == np.arange(len(samples))[:, None]
        return cls(first, new, np.zeros(first.shape, np.int64))

    def counts(self, samples: Samples) -> RepeatCounts:
        """Return the counts of the step with these ``samples``."""
        lengths, again = samples.bag_lengths, ~self.new
        return RepeatCounts(*(int(each.sum()) for each in (
            lengths > 0, again, lengths, lengths[again])))

    def expand(self, answers: np.ndarray, status: np.ndarray, first: int, last: int) -> None:
        """Copy the vectors of new bags to the bags that repeat them, in the samples ``first`` to
        ``last - 1``, a share. A sample that uses a bag with an error ends with the error.

        answers: of all samples, float32 ``[samples, tables, values]``. status: of all samples.
        """
        sources, tables = self.first[first:last], np.arange(self.first.shape[1])
        sample, table = np.nonzero(~self.new[first:last])
        answers[first + sample, table] = answers[sources[sample, table], table]
        errors = self.errors[sources, tables]
        ended = (status[first:last] == 0) & errors.any(axis=1)
        foremost = (errors[ended] != 0).argmax(axis=1)
        status[first:last][ended] = errors[ended, foremost]
