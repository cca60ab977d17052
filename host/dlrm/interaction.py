"""Interactions of DLRM, bit-identical to the hardware's, and the layout of their results."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from host.dlrm.float32 import canonical, quiet
from host.model import Model, without_blocks
from rtl.config import LANES, beats_of

__all__ = ["ResultLayout", "concatenation", "dot_interaction", "interaction", "unpadded",
           "without_padding"]

_BLOCK_SAMPLES = 128


@quiet()
def dot_interaction(dense: np.ndarray, pooled: np.ndarray, *, itself: bool = False) -> np.ndarray:
    """Return ``[dense | dots]`` for float32 ``dense [n, d]`` and ``pooled [n, tables, d]``.

    The dots are those of the pairs (i, j), j < i, row-major, of Z = [dense; pooled]; with
    ``itself`` (DLRM's ``arch_interaction_itself``) also j = i. Each product is rounded to float32.
    The 16 products of a slice are summed by a balanced tree that adds neighbours, ((0+1)+(2+3)) +
    …; the sums of the slices are added in ascending order. Unused lanes of the last slice are +0
    and go through the tree, too. A NaN among the dots is 0x7FC00000; the dense vector is kept bit
    for bit.
    """
    n, dimension = dense.shape
    lanes = -(-dimension // LANES) * LANES
    vectors = pooled.shape[1] + 1
    width = dimension + vectors * (vectors + (1 if itself else -1)) // 2
    result = np.empty((n, width), np.float32)
    result[:, :dimension] = dense
    for first in range(0, n, _BLOCK_SAMPLES):
        last = min(n, first + _BLOCK_SAMPLES)
        z = np.zeros((lanes, vectors, last - first), np.float32)
        z[:dimension, 0] = dense[first:last].T
        z[:dimension, 1:] = pooled[first:last].transpose(2, 1, 0)
        column = dimension
        for i in range(0 if itself else 1, vectors):
            columns = i + 1 if itself else i
            dots = None
            for low in range(0, dimension, LANES):
                tree = z[low:low + LANES, i, None] * z[low:low + LANES, :columns]
                while len(tree) > 1:
                    tree = tree[0::2] + tree[1::2]
                dots = tree[0] if dots is None else dots + tree[0]
            result[first:last, column:column + columns] = canonical(dots.T)
            column += columns
    return result


def concatenation(dense: np.ndarray, pooled: np.ndarray) -> np.ndarray:
    """Return ``[dense | pooled]`` for float32 ``dense [n, d]`` and ``pooled [n, ...]``."""
    return np.concatenate((dense, pooled.reshape(len(pooled), -1)), axis=1)


@lru_cache(maxsize=16)
def unpadded(model: Model) -> np.ndarray:
    """Return the positions of the values that are not padding in a sample's vectors ``[tables,
    width]``, flattened: bool ``[tables * width]``."""
    return (np.arange(model.width) < np.array(model.table_dimensions)[:, None]).reshape(-1)


def interaction(model: Model, dense: np.ndarray, pooled: np.ndarray) -> np.ndarray:
    """Return the input of the top MLP of ``model``: float32 ``[n, model.interaction_width]``.

    ``pooled [n, tables, model.width]``, and ``dense`` if it is wider than ``model.dimension``, have
    padding that the result lacks.
    """
    model, pooled = without_blocks(model), added_blocks(model, pooled)
    dense, pooled = dense[:, :model.dimension], without_padding(model, pooled)
    if model.interaction == "cat":
        return concatenation(dense, pooled)
    return dot_interaction(dense, pooled, itself=model.interaction_itself)


@quiet()
def added_blocks(model: Model, pooled: np.ndarray) -> np.ndarray:
    """Return ``pooled [n, tables, width]`` with the vectors of the row blocks of a table added, in
    ascending order, in float32: ``[n, original tables, width]``."""
    if not model.first_rows:
        return pooled
    sums = pooled[:, np.array(model.first_rows) == 0].copy()
    for number in np.flatnonzero(model.first_rows).tolist():
        sums[:, model.originals[number]] += pooled[:, number]
    return canonical(sums)


def without_padding(model: Model, pooled: np.ndarray) -> np.ndarray:
    """Return ``pooled [n, tables, width]`` without the padding of narrower vectors, and with column
    slices joined: ``[n, tables, dimension]``, or ``[n, values]`` for tables of different
    dimensions."""
    values = pooled.reshape(len(pooled), model.tables * model.width)
    if model.padding:
        values = values[:, unpadded(model)]
    if model.dimensions and model.interaction == "cat":
        return values
    return values.reshape(len(pooled), -1, model.dimension)


@dataclass(frozen=True)
class ResultLayout:
    """Layout of a sample's interaction in the beats that a NIC sends.

    Dots begin on a new beat after the dense vector; concatenated vectors follow each other without
    a gap. Unused lanes of a beat are zero.

    Members
    -------
    width: values of a result.
    head: values of the dense vector.
    rest: lane, counted from the first beat, at which the other values begin.
    """

    width: int
    head: int
    rest: int

    @classmethod
    def of(cls, model: Model) -> "ResultLayout":
        """Return the layout of the results of ``model``."""
        dots = model.interaction == "dot"
        return cls(model.interaction_width, model.dimension,
                   beats_of(model.width) * LANES if dots else model.dimension)

    @property
    def beats(self) -> int:
        """Beats per result."""
        return -(-(self.rest + self.width - self.head) // LANES)

    def to_beats(self, values: np.ndarray) -> np.ndarray:
        """Return float32 ``[n, beats, 16]`` of ``values [n, width]``."""
        lanes = np.zeros((len(values), self.beats * LANES), np.float32)
        lanes[:, :self.head] = values[:, :self.head]
        lanes[:, self.rest:self.rest + self.width - self.head] = values[:, self.head:]
        return lanes.reshape(len(values), self.beats, LANES)

    def to_values(self, beats: np.ndarray) -> np.ndarray:
        """Return float32 ``[n, width]`` of ``beats [n, beats, 16]``."""
        lanes = beats.reshape(len(beats), -1)
        return np.concatenate((lanes[:, :self.head],
                               lanes[:, self.rest:self.rest + self.width - self.head]), axis=1)
