"""Operands for binary32 adders, and what numpy makes of them."""

import numpy as np

__all__ = ["directed_pairs", "numpy_add", "random_pairs"]

NAN = 0x7FC00000


def directed_pairs() -> np.ndarray:
    """Exponents at and around every edge times significands at and around every tie: [n, 2]."""
    special = [
        (e << 23) | f
        for e in (0, 1, 2, 24, 25, 126, 127, 128, 149, 150, 151, 152, 253, 254, 255)
        for f in (0, 1, 0x400000, 0x3FFFFF, 0x7FFFFF)]
    values = np.array(special, dtype=np.uint32)
    a, b = (g.ravel() for g in np.meshgrid(values, values))
    pairs = [np.stack([a, b], axis=1), np.stack([a, b | np.uint32(1 << 31)], axis=1),
             np.stack([a | np.uint32(1 << 31), b], axis=1)]
    return np.concatenate(pairs)


def random_pairs(count: int, seed: int) -> np.ndarray:
    """Random bits; a third with exponents close together, a third of those nearly opposite."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    near = slice(0, count // 3)
    exponents = (pairs[near, 0] >> 23) & 0xFF
    other = np.clip(exponents.astype(np.int64) + rng.integers(-28, 29, count // 3), 0, 255)
    pairs[near, 1] = (pairs[near, 1] & 0x807FFFFF) | (other.astype(np.uint32) << 23)
    opposite = slice(0, count // 9)
    change = rng.integers(0, 1 << 6, count // 9, dtype=np.uint32)
    pairs[opposite, 1] = pairs[opposite, 0] ^ (0x80000000 | change)
    subnormal = slice(count // 3, count // 2)
    pairs[subnormal] &= np.uint32(0x80FFFFFF)
    return pairs


def numpy_add(pairs: np.ndarray) -> np.ndarray:
    """Return the sums as numpy has them, every NaN as 0x7FC00000."""
    with np.errstate(all="ignore"):
        sums = pairs[:, 0].view(np.float32) + pairs[:, 1].view(np.float32)
    return np.where(np.isnan(sums), np.uint32(NAN), sums.view(np.uint32))
