"""Counts of key uses in bounded memory: exact if they fit, otherwise estimated.

All keys and their counts are held until memory is full. Then the table with the most keys is
thinned: half of its keys (hash bit 0 at the next position) are dropped, and each remaining key
counts twice. The most used keys are exempt. From then on, the table rejects every key that thinning
would have dropped. Each key is thus held with a known probability, and sums weighted with its
inverse are unbiased (Horvitz and Thompson 1952; thinning by hash: Gibbons, Distinct sampling, VLDB
2001).
"""

import math
from dataclasses import dataclass

import numpy as np

from host.hashing import GOLDEN, mix64
from host.samples import KEY_ROW_BITS, Samples
from rtl.formats import TABLE_BITS

__all__ = ["MOST_KEYS", "KeyCounts", "Skew", "TableKeys"]

MOST_KEYS = 1 << 22
"""Maximum keys held by default; counting them takes about 350 MB."""

_HEAVY = 8
"""A table's share of exempt keys when it is thinned: 1 / 8."""


@dataclass(frozen=True)
class Skew:
    """Distribution of key uses.

    Members
    -------
    accesses, unique: number of accesses, and of distinct keys.
    top1, top10: share of accesses to the most used 1 % and 10 % of the keys.
    error: standard error of ``unique``; 0 if all figures are exact.
    """

    accesses: int
    unique: int
    top1: float
    top10: float
    error: float = 0.0


@dataclass(frozen=True)
class TableKeys:
    """A table's ``accesses`` and ``unique`` keys, with their standard ``error``."""

    accesses: int
    unique: int
    error: float


class KeyCounts:
    """Counts of the keys of a stream of samples.

    Parameters
    ----------
    most: maximum keys to hold; None is unlimited. Half as many keys, at least 2^20, may wait to be
        counted.
    """

    def __init__(self, most: int | None = MOST_KEYS):
        if most is not None and most < 1 << TABLE_BITS:
            raise ValueError(f"most must be at least {1 << TABLE_BITS}, not {most!r}")
        self._most = most
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._levels = np.zeros(0, np.uint8)  # a key of level n stands for 2^n keys
        self._thinned = np.zeros(0, np.int64)  # times each table was thinned
        self._accesses = np.zeros(0, np.int64)  # of each table
        self._waiting: list[np.ndarray] = []
        self._wait = 0

    def add(self, samples: Samples) -> None:
        """Count the keys of ``samples``."""
        self._accesses = _zero_extend(self._accesses, samples.table_count)
        self._thinned = _zero_extend(self._thinned, samples.table_count)
        self._accesses[:samples.table_count] += samples.bag_lengths.sum(axis=0, dtype=np.int64)
        self._waiting.append(samples.keys)
        self._wait += len(samples.rows)
        if self._wait >= max(1 << 20, len(self._keys) // 2):
            self._count()

    def skew(self) -> Skew:
        """Return the distribution of key uses; 1 % and 10 % are rounded up to whole keys."""
        self._count()
        order = np.argsort(self._counts)[::-1]
        weights = (1 << self._levels[order].astype(np.int64))
        held = np.cumsum(weights)  # estimated number of keys
        used = np.cumsum(weights * self._counts[order])
        unique = int(held[-1]) if len(held) else 0
        total = int(self._accesses.sum())

        def share(part: float) -> float:
            wanted = math.ceil(unique * part)
            at = int(np.searchsorted(held, wanted))
            if wanted == 0:
                return 0.0
            beyond = (held[at] - wanted) * self._counts[order[at]]  # a part of the last
            return min(1.0, float((used[at] - beyond) / max(1, total)))

        return Skew(total, unique, share(0.01), share(0.1), _error(self._levels))

    def tables(self) -> list[TableKeys]:
        """Return each table's accesses, unique keys, and standard error."""
        self._count()
        bounds = self._bounds()
        found = []
        for table, accesses in enumerate(self._accesses.tolist()):
            levels = self._levels[bounds[table]:bounds[table + 1]]
            unique = int((1 << levels.astype(np.int64)).sum())
            found.append(TableKeys(accesses, min(unique, accesses), _error(levels)))
        return found

    def _count(self) -> None:
        """Merge the waiting keys into the held ones; both are sorted."""
        if not self._waiting:
            return
        keys = np.concatenate(self._waiting)
        self._waiting, self._wait = [], 0
        keys.sort()
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))[:len(keys)]
        counts = np.diff(first, append=len(keys))
        keys = keys[first]
        at = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), bool)
        inside = at < len(self._keys)
        known[inside] = self._keys[at[inside]] == keys[inside]
        self._counts[at[known]] += counts[known]
        levels = self._thinned[keys >> KEY_ROW_BITS]
        new = ~known & _passes(keys, levels)
        at, levels = at[new], levels[new].astype(np.uint8)
        self._keys = np.insert(self._keys, at, keys[new])
        self._counts = np.insert(self._counts, at, counts[new])
        self._levels = np.insert(self._levels, at, levels)
        while self._most is not None and len(self._keys) > self._most:
            self._thin()

    def _bounds(self) -> np.ndarray:
        """Return the index of each table's first key, then the number of keys."""
        return np.searchsorted(self._keys, np.arange(len(self._accesses) + 1) << KEY_ROW_BITS)

    def _thin(self) -> None:
        """Thin, once, the largest table that can be thinned."""
        bounds = self._bounds()
        table = int(np.diff(bounds).argmax())
        part = slice(bounds[table], bounds[table + 1])
        level = self._thinned[table] = self._thinned[table] + 1
        counts, levels = self._counts[part], self._levels[part]
        heavy = len(counts) // _HEAVY
        limit = np.partition(counts, len(counts) - 1 - heavy)[len(counts) - 1 - heavy]
        own = counts > limit
        stays = own | _passes(self._keys[part], np.full(len(counts), level))
        levels[stays & ~own] = level
        keep = np.ones(len(self._keys), bool)
        keep[part] = stays
        self._keys, self._counts = self._keys[keep], self._counts[keep]
        self._levels = self._levels[keep]


def _passes(keys: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return which keys survive thinning to a level: their hash begins with that many zeros."""
    levels = np.asarray(levels, np.uint64)
    if not levels.any():
        return np.ones(len(keys), bool)
    hashes = mix64(keys.view(np.uint64) ^ np.uint64(GOLDEN))  # key 0 must not hash to 0
    return hashes >> (np.uint64(64) - levels) == 0  # a shift by 64 gives 0


def _error(levels: np.ndarray) -> float:
    """Return the standard error of the estimated number of keys."""
    weights = 1 << levels.astype(np.int64)
    return float(np.sqrt((weights * (weights - 1)).sum()))


def _zero_extend(values: np.ndarray, size: int) -> np.ndarray:
    return np.pad(values, (0, max(0, size - len(values))))
