"""A mini-batch and its similarity."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from host.distinct import distinct
from host.samples import Samples

__all__ = ["MiniBatch"]


@dataclass(frozen=True)
class MiniBatch:
    """Samples chosen from a window.

    Members
    -------
    samples: its samples.
    numbers: number of each sample in the stream: int64 ``[n]``.
    fresh: whether the window was loaded just before this mini-batch, so that exactly the samples
        before the lowest of ``numbers`` are used.
    first: first mini-batch of the window; None if it is itself the first.
    """

    samples: Samples
    numbers: np.ndarray
    fresh: bool
    first: Self | None = field(default=None, repr=False)

    @cached_property
    def unique(self) -> int:
        """Number of distinct keys."""
        return len(distinct(self.samples.keys))

    @property
    def downgrade(self) -> float | None:
        """Similarity relative to the first mini-batch of the window; None if that is 0."""
        first = (self.first or self).similarity
        return self.similarity / first if first else None

    @property
    def similarity(self) -> float:
        """1 - unique keys / accesses; 0 without accesses."""
        return similarity(self.unique, len(self.samples.rows))


def similarity(unique: int, accesses: int) -> float:
    """Return the similarity of samples with ``unique`` keys in ``accesses`` accesses."""
    return 1 - unique / accesses if accesses else 0.0
