"""Random draws of the generator: hashes of what is drawn, popularities, and requests."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from host.hashing import GOLDEN, mix64, mix64_int, uniforms

__all__ = ["Popularity", "draw", "hashes", "request_of", "scramble"]

_ROWS, _ORDER = 11, 15


@dataclass(frozen=True)
class Popularity:
    """Zipf-Mandelbrot: rank x from 0 on has a probability of about (x + shift)^-exponent."""

    exponent: float
    shift: float

    def ranks(self, u: np.ndarray, count: float) -> np.ndarray:
        """Map uniforms ``u`` to ranks below ``count`` by the inverse distribution function."""
        # The exponent 1 would need a logarithm, so it is approached but never reached.
        power = 1.0 - self.exponent - 1e-9
        low, high = self.shift ** power, (self.shift + count) ** power
        x = (low + u * (high - low)) ** (1.0 / power) - self.shift
        return np.clip(x, 0, count - 1).astype(np.int64)


def hashes(seed: int, what: tuple[int, ...], index: np.ndarray,
           each: np.ndarray | None = None) -> np.ndarray:
    """Return a 64-bit hash of each index for the draw ``what``. With ``each``, return hashes for
    the draws ``(*what, n)`` of its numbers n: ``[index, each]``."""
    base = np.uint64(number := mix64_int(seed, 0x67656E, *what))
    if each is not None:  # the last step of `mix64_int`
        base = mix64(each.astype(np.uint64) ^ np.uint64((number + GOLDEN) % (1 << 64)))
        index = index[:, None]
    return mix64(mix64(index.astype(np.uint64) * np.uint64(GOLDEN) + base) ^ base)


def draw(seed: int, what: tuple[int, ...], index: np.ndarray,
         each: np.ndarray | None = None) -> np.ndarray:
    """Return uniform numbers between 0 and 1 instead of the hashes of :func:`hashes`."""
    return uniforms(hashes(seed, what, index, each))


def scramble(rank: np.ndarray, table: int, size: int, seed: int) -> np.ndarray:
    """Map ranks to rows of a table, one to one."""
    factor = mix64_int(seed, _ROWS, table) % min(size, 1 << 26) | 1
    while np.gcd(factor, size) != 1:
        factor += 2
    return (rank * factor + mix64_int(seed, _ROWS, table, 1) % size) % size


def request_of(index: np.ndarray, lengths: tuple[int, ...], seed: int) -> np.ndarray:
    """Return the number of the request that each sample belongs to.

    index: numbers of samples. lengths: samples of a request; each of them occurs once in as many
    consecutive requests, in an order that the seed decides. Without lengths, each sample is a
    request.
    """
    if not lengths:
        return index
    turn, within = np.divmod(index, sum(lengths))
    found = np.empty(len(index), np.int64)
    for each in np.unique(turn).tolist():
        here = turn == each
        found[here] = np.searchsorted(_ends(lengths, each, seed), within[here], side="right")
    return found + len(lengths) * turn


@lru_cache(maxsize=64)
def _ends(lengths: tuple[int, ...], turn: int, seed: int) -> np.ndarray:
    """Return the running sum of ``lengths`` in the order of a turn."""
    order = np.argsort(hashes(seed, (_ORDER, turn), np.arange(len(lengths))), kind="stable")
    return np.cumsum(np.array(lengths)[order])
