"""Dot interaction of DLRM, bit by bit as the hardware orders it."""

import numpy as np

from rtl.config import LANES

__all__ = ["dot_interaction"]

_BLOCK_SAMPLES = 128


def dot_interaction(dense: np.ndarray, pooled: np.ndarray, *, itself: bool = False) -> np.ndarray:
    """Return ``[dense | dots]`` for float32 ``dense [n, d]`` and ``pooled [n, tables, d]``.

    The dots are those of the pairs (i, j), j < i, row-major, of Z = [dense; pooled]; with
    ``itself`` (DLRM's ``arch_interaction_itself``) those with j = i too. Each product
    is rounded to float32; the 16 products of a slice go through one balanced tree that adds
    neighbours, ((0+1)+(2+3)) + …; the sums of the slices are added in ascending order. Lanes of the
    last slice that ``d`` leaves free are +0, and go through the tree too.
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
            result[first:last, column:column + columns] = dots.T
            column += columns
    return result
