"""Joint draws of constants."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

__all__ = ["drawn"]


def drawn(widths: Sequence[tuple[str, float]], count: int, seed: int) -> np.ndarray:
    """Return ``count`` joint draws, the factor of each constant: float64 ``[draws, constants]``.

    Factors are log-uniform from 1 / width to width, and independent. Each of ``count`` equal slices
    of a range has one draw (Latin hypercube; McKay, Beckman and Conover, Technometrics 21(2),
    1979). The factors of a constant depend only on its name, its width, ``count`` and the seed.

    widths: ``profile.constant`` and width of each.
    """
    columns = []
    for name, width in widths:
        random = np.random.default_rng([seed, int(sha256(name.encode()).hexdigest()[:8], 16)])
        place = (random.permutation(count) + random.random(count)) / max(1, count)
        columns.append(width ** (2 * place - 1))
    return np.array(columns).T.reshape(count, len(widths))
