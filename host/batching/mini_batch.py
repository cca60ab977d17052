"""A mini-batch and its similarity."""

from dataclasses import dataclass

import numpy as np

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
    unique: number of distinct keys.
    downgrade: similarity relative to the first mini-batch of the window; None if that was 0.
    """

    samples: Samples
    numbers: np.ndarray
    fresh: bool
    unique: int
    downgrade: float | None

    @property
    def similarity(self) -> float:
        """1 - unique keys / accesses; 0 without accesses."""
        return similarity(self.unique, len(self.samples.rows))


def similarity(unique: int, accesses: int) -> float:
    """Return the similarity of samples with ``unique`` keys in ``accesses`` accesses."""
    return 1 - unique / accesses if accesses else 0.0
