"""Bounds of rows whose gradients are summed in float32, in any order."""

import numpy as np

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.float32 import quiet
from host.dlrm.optimizer import Optimizer

__all__ = ["Interval", "row_bounds", "sum_bounds"]

Interval = tuple[np.ndarray, np.ndarray]
"""Least and largest float32 of each element."""

_UNIT = 2.0 ** -24
"""Largest relative error of a float32 addition; sums of subnormals are exact."""


def sum_bounds(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, Interval]:
    """Return the distinct ``keys [n]``, ascending, and the bounds ``[k, d]`` of any sum of each
    key's ``values [n, d]`` by float32 additions.

    A sum of n terms differs from the exact sum by at most ``((1 + 2^-24)^n - 1)`` times the sum of
    magnitudes: n - 1 additions, and the rounding of the exact sum. Sums of one or two terms are
    exact sums, rounded once. The bounds are infinite if a partial sum may overflow.
    """
    distinct, sums = sums_by_key(keys, values)
    order = np.argsort(keys, kind="stable")
    starts = np.searchsorted(keys[order], distinct)
    counts = np.diff(np.append(starts, len(keys)))
    with np.errstate(all="ignore"):
        total = np.add.reduceat(np.abs(values[order].astype(np.float64)), starts)
        most = np.expm1(counts * _UNIT)[:, None] * total * (1 + 1e-9)
        low, high = sums - most, sums + most
        low, high = (np.nextafter(edge.astype(np.float32), np.float32(way))
                     for edge, way in ((low, -np.inf), (high, np.inf)))
    exact = (counts <= 2)[:, None]
    open_ = ~exact & ~(total * (1 + 1e-6) < np.finfo(np.float32).max)
    return distinct, (np.where(exact, sums, np.where(open_, -np.inf, low)).astype(np.float32),
                      np.where(exact, sums, np.where(open_, np.inf, high)).astype(np.float32))


@quiet()
def row_bounds(optimizer: Optimizer, vectors: np.ndarray, states: np.ndarray,
               gradients: Interval) -> tuple[Interval, Interval]:
    """Return the bounds of the new vectors ``[n, d]`` and states ``[n]`` of rows whose
    ``gradients`` are within bounds.

    Each rounded operation of the optimizer is monotone in each operand, so the extremes are at the
    ends of the gradients.
    """
    low, high = gradients
    nearest = np.where(np.signbit(low) == np.signbit(high),
                       np.where(np.abs(low) < np.abs(high), low, high), np.float32(0))
    farthest = np.where(np.abs(low) < np.abs(high), high, low)
    corners = []
    new: list[np.ndarray] = []
    for size in (nearest, farthest):
        _, state = optimizer.apply(vectors, states, size)
        new.append(state)
        corners += [optimizer.moved(vectors, state, gradient) for gradient in (low, high)]
    return ((np.minimum.reduce(corners), np.maximum.reduce(corners)), (new[0], new[1]))
