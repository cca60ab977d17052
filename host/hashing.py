"""Integer hashes of uint64 arrays. They must never change, because results depend on them."""

import numpy as np

__all__ = ["GOLDEN", "check_seed", "mix64", "mix64_int", "uniforms"]

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, the step of SplitMix64 (Steele et al. 2014)."""

_MASK = (1 << 64) - 1
_M1, _M2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53


def mix64(values: np.ndarray) -> np.ndarray:
    """Return the 64-bit finaliser of MurmurHash3 of each value, a bijection on uint64."""
    h = np.array(values, np.uint64)  # a copy, modified in place
    h ^= h >> np.uint64(33)
    h *= np.uint64(_M1)
    h ^= h >> np.uint64(33)
    h *= np.uint64(_M2)
    h ^= h >> np.uint64(33)
    return h


def mix64_int(*values: int) -> int:
    """Return a 64-bit hash of several integers, to derive seeds."""
    h = 0
    for value in values:
        h = (h + GOLDEN) & _MASK ^ value & _MASK
        h ^= h >> 33
        h = h * _M1 & _MASK
        h ^= h >> 33
        h = h * _M2 & _MASK
        h ^= h >> 33
    return h


def uniforms(hashes: np.ndarray) -> np.ndarray:
    """Return float64 strictly between 0 and 1 from the upper 52 bits of each hash."""
    return ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0 ** -52


def check_seed(seed: int) -> None:
    """Raise ``ValueError`` unless ``seed`` has 64 bits; hashes would truncate a larger seed."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed must be between 0 and 2^64 - 1, not {seed!r}")
