"""Pairs of vectors in the order of a dot interaction's results."""

from math import isqrt

__all__ = ["pair", "pair_count", "pair_groups"]


def pair(index: int) -> tuple[int, int]:
    """Return the ``index``-th pair (i, j), j < i, of the row-major lower triangle.

    The triangle does not depend on the number of vectors. With the pairs (i, i) it is the same
    triangle shifted by a row: the pair is then (i - 1, j).
    """
    row = (1 + isqrt(1 + 8 * index)) // 2
    return row, index - row * (row - 1) // 2


def pair_count(vectors: int, *, itself: bool = False) -> int:
    """Return the number of dots of ``vectors`` vectors; ``itself`` adds the pairs (i, i)."""
    return vectors * (vectors + (1 if itself else -1)) // 2


def pair_groups(vectors: int, units: int, *, itself: bool = False) -> int:
    """Return the number of cycles in which ``units`` dot products cover all pairs of a slice."""
    return -(-pair_count(vectors, itself=itself) // units)
