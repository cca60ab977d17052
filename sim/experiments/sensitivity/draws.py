"""Joint draws of constants, and space-filling designs."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

__all__ = ["WIDEST", "drawn", "latin_hypercube"]

WIDEST = 2.0
"""Largest factor of a draw; the smallest is its inverse."""


def drawn(names: Sequence[str], count: int, seed: int) -> np.ndarray:
    """Return ``count`` joint draws, the factor of each constant: float64 ``[draws, names]``.

    Factors are log-uniform from 1 / `WIDEST` to `WIDEST`, and independent. The factors of a
    constant depend only on its name, the seed and the number of the draw. Data sets and software
    profiles therefore share them, and an added constant changes no other draw.
    """
    columns = [np.random.default_rng([seed, int(sha256(name.encode()).hexdigest()[:8], 16)])
               .uniform(-1, 1, count) for name in names]
    return WIDEST ** np.array(columns).T.reshape(count, len(names))


def latin_hypercube(count: int, axes: int, seed: int) -> np.ndarray:
    """Return points of the unit cube, float64 ``[count, axes]``, one in each of ``count`` slices of
    every axis (McKay, Beckman and Conover, Technometrics 21(2), 1979)."""
    random = np.random.default_rng(seed)
    slices = np.array([random.permutation(count) for _ in range(axes)]).T.reshape(count, axes)
    return (slices + random.random((count, axes))) / max(1, count)
