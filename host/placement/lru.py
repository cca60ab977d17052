"""A textbook set-associative LRU cache, to compare with and to predict hit rates by."""

from collections import OrderedDict, defaultdict
from collections.abc import Hashable

import numpy as np

__all__ = ["LruSets", "NodeCaches", "set_of"]


def set_of(key_hash, sets: int):
    """Return the set of a key: its hash's bits 31 to 8, scaled to ``sets``.

    ``key_hash`` is an int, or an int64 array for the sets of several keys.
    """
    return ((key_hash >> 8) & 0xFFFFFF) * sets >> 24


class LruSets:
    """Sets of ``ways`` keys each; a miss replaces the key that was used longest ago.

    Memory is taken by the keys held, not by ``sets``.

    Raises ``ValueError`` for fewer than one set or way.
    """

    def __init__(self, sets: int, ways: int):
        for name, value in (("sets", sets), ("ways", ways)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value!r}")
        self.ways = ways
        self.sets = sets
        self._sets: defaultdict[int, OrderedDict[Hashable, None]] = defaultdict(OrderedDict)
        self.evicted: Hashable | None = None
        """The key that the last access put out, or None."""

    def access(self, index: int, key: Hashable) -> bool:
        """Look ``key`` up in set ``index`` and make it the newest; True when it was there.

        Raises ``IndexError`` for a set that there is not.
        """
        if not 0 <= index < self.sets:
            raise IndexError(f"index must be between 0 and {self.sets - 1}, not {index!r}")
        lines = self._sets[index]
        self.evicted = None
        if key in lines:
            lines.move_to_end(key)
            return True
        if len(lines) == self.ways:
            self.evicted, _ = lines.popitem(last=False)
        lines[key] = None
        return False

    def holds(self, index: int, key: Hashable) -> bool:
        """Return whether ``key`` is in set ``index``, which stays as it is."""
        return key in self._sets.get(index, ())

    def __contains__(self, key: Hashable) -> bool:
        return any(key in lines for lines in self._sets.values())


class NodeCaches:
    """The caches of all nodes of a cluster, alike and empty at first.

    Parameters
    ----------
    sets, ways: of each; no sets for caches that are off, which hit nothing.
    nodes: number of caches.
    policy: what models one, by default LRU.

    ``evictions`` counts the keys put out.
    """

    def __init__(self, sets: int, ways: int, nodes: int, policy: type[LruSets] = LruSets):
        self.sets = sets
        self._nodes = [policy(sets, ways) for _ in range(nodes)] if sets else []
        self.evictions = 0

    def access(self, owners: np.ndarray, hashes: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Look each key up at its owner, one after the other; return which were there: bool [n].

        ``hashes`` are :func:`host.placement.shard.key_hash` of the keys.
        """
        if not self._nodes:
            return np.zeros(len(keys), bool)
        hits = []
        indices = set_of(hashes.astype(np.int64), self.sets)
        for owner, index, key in zip(owners.tolist(), indices.tolist(), keys.tolist()):
            cache = self._nodes[owner]
            hits.append(cache.access(index, key))
            self.evictions += cache.evicted is not None
        return np.array(hits, bool)

    def held(self, owners: np.ndarray, hashes: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return which keys are at their owners: bool [n]. Nothing is looked up by it."""
        if not self._nodes:
            return np.zeros(len(keys), bool)
        indices = set_of(hashes.astype(np.int64), self.sets)
        return np.array([self._nodes[owner].holds(index, key) for owner, index, key in zip(
            owners.tolist(), indices.tolist(), keys.tolist())], bool)
