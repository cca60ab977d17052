"""Interpolator of positive values: Gaussian processes over the logarithms.

The mean is linear. The covariance is Matern's of order 5/2 with a length for each axis (Rasmussen
and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2, 4 and 5). Lengths and
noise minimise the leave-one-out error, which needs no second fit.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["FLOOR", "Smooth"]

FLOOR = 0.1
"""Added to values before the logarithm, to allow 0: us, or a tenth of a launch."""

_LENGTHS = 2.0 ** np.arange(-1, 6)
"""Candidate lengths, in standard deviations of an axis; the longest are almost linear."""
_NOISES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Candidate noise, as shares of the variance: times of simulated NICs are not perfectly smooth."""
_LINEAR = 100.0
"""Prior variance of the mean and its slopes, in variances of the values; wide, to let the values
decide."""
_ROUNDS = 2


@dataclass(frozen=True)
class _Covariance:
    lengths: np.ndarray
    noise: float

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the covariances of points ``[n, axes]`` and ``[m, axes]``, without noise."""
        far = np.sqrt((((a[:, None] - b[None]) / self.lengths) ** 2).sum(-1) * 5)
        return (1 + far + far ** 2 / 3) * np.exp(-far) + _LINEAR * (1 + a @ b.T)

    def inverse(self, a: np.ndarray) -> np.ndarray:
        """Return the inverse of the covariances of points, noise included."""
        return np.linalg.inv(self.between(a, a) + self.noise * np.eye(len(a)))


class Smooth:
    """Interpolator of values over points.

    Parameters
    ----------
    points: float64 ``[points, axes]``, at least three points.
    values: float64 ``[points, values]``, at least 0; all columns share lengths and noise.
    """

    def __init__(self, points: np.ndarray, values: np.ndarray):
        if len(points) < 3:
            raise ValueError(f"points must be at least 3, not {len(points)}")
        self._centre, self._scale = points.mean(0), _spread(points)
        self._at = (points - self._centre) / self._scale
        logs = np.log(values + FLOOR)
        self._mean, self._height = logs.mean(0), _spread(logs)
        self._logs = (logs - self._mean) / self._height
        self._covariance = self._fitted()
        self._inverse = self._covariance.inverse(self._at)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the values at ``points``, float64 ``[points, values]``."""
        to = (points - self._centre) / self._scale
        return self._values(self._covariance.between(to, self._at) @ self._inverse @ self._logs)

    def left_out(self) -> np.ndarray:
        """Return the values at its own points, each from the other points."""
        return self._values(_left_out(self._inverse, self._logs))

    def _values(self, logs: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, np.exp(logs * self._height + self._mean) - FLOOR)

    def _fitted(self) -> _Covariance:
        """Return the covariance with the least leave-one-out error, optimised one axis at a time.
        """
        found = []
        for noise in _NOISES:
            lengths = np.full(self._at.shape[1], 2.0)
            for _ in range(_ROUNDS):
                for axis in range(len(lengths)):
                    tried = [_with(lengths, axis, length) for length in _LENGTHS]
                    lengths = min(tried, key=lambda each: self._error(_Covariance(each, noise)))
            found.append(_Covariance(lengths, noise))
        return min(found, key=self._error)

    def _error(self, covariance: _Covariance) -> float:
        left_out = _left_out(covariance.inverse(self._at), self._logs)
        return float(((left_out - self._logs) ** 2).mean())


def _left_out(inverse: np.ndarray, logs: np.ndarray) -> np.ndarray:
    return logs - (inverse @ logs) / np.diag(inverse)[:, None]


def _spread(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column, 1 for a constant column."""
    spread = values.std(0)
    return np.where(spread > 1e-12, spread, 1.0)


def _with(lengths: np.ndarray, axis: int, length: float) -> np.ndarray:
    changed = lengths.copy()
    changed[axis] = length
    return changed
