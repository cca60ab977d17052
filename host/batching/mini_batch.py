"""A mini-batch, and how alike its samples are."""

from dataclasses import dataclass

import numpy as np

from host.samples import Samples

__all__ = ["MiniBatch"]


@dataclass(frozen=True)
class MiniBatch:
    """Samples that were chosen from a window.

    Members
    -------
    samples: its samples.
    numbers: number of each in the stream that it came from: int64 ``[n]``.
    fresh: whether every sample of the stream before the lowest of ``numbers`` was given before,
        and no other: the window had just been loaded.
    unique: different keys.
    downgrade: its similarity relative to that of the first mini-batch since the window was loaded;
        None where that had none.
    """

    samples: Samples
    numbers: np.ndarray
    fresh: bool
    unique: int
    downgrade: float | None

    @property
    def similarity(self) -> float:
        """1 - unique keys / accesses; 0 where there are no accesses."""
        return similarity(self.unique, len(self.samples.rows))


def similarity(unique: int, accesses: int) -> float:
    """Return the similarity of samples with ``unique`` keys in so many accesses."""
    return 1 - unique / accesses if accesses else 0.0
