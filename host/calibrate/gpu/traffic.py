"""Mini-batches of the generator, with its skew, as arrays for a device."""

from dataclasses import dataclass

import numpy as np

from host.data.generator import generate
from host.model import Model
from host.samples import concatenate

__all__ = ["MiniBatches", "mini_batches"]


@dataclass(frozen=True)
class MiniBatches:
    """Consecutive mini-batches of samples with one key in each table.

    Members
    -------
    dense: float32 ``[mini-batches, samples, dense features]``.
    keys: int64 ``[mini-batches, samples, tables]``, rows of their tables.
    rows: of each table; fewer than the model's if scaled. first: where each table begins in one
        that holds all, int64.
    """

    dense: np.ndarray
    keys: np.ndarray
    rows: tuple[int, ...]
    first: np.ndarray

    @property
    def joined(self) -> np.ndarray:
        """The keys as rows of one table that holds all: int64, shaped as ``keys``."""
        return self.keys + self.first


def mini_batches(model: Model, samples: int, count: int, scale: float = 1.0,
                 seed: int = 0) -> MiniBatches:
    """Return ``count`` mini-batches of ``samples`` samples of the generator.

    ``scale``: share of the rows of each table that exist; keys beyond them wrap around.
    """
    rows = tuple(max(1, int(size * scale)) for size in model.rows)
    made = concatenate(generate(model, samples * count, seed))
    keys = made.rows.reshape(count, samples, model.tables) % np.array(rows, np.int64)
    first = np.concatenate([[0], np.cumsum(rows)[:-1]]).astype(np.int64)
    return MiniBatches(made.dense.reshape(count, samples, -1), keys, rows, first)
