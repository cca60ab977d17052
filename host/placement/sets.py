"""A textbook set-associative cache, as a reference and to predict hit rates."""

from collections import defaultdict
from collections.abc import Hashable
from functools import partial

import numpy as np

from host.placement.policies import Policy, policy_of

__all__ = ["CacheSets", "NodeCaches", "set_of"]


def set_of(key_hash, sets: int):
    """Return the set of a key: its hash's bits 31 to 8, scaled to ``sets``.

    ``key_hash`` is an int, or an int64 array of several hashes.
    """
    return ((key_hash >> 8) & 0xFFFFFF) * sets >> 24


class CacheSets:
    """Sets of ``ways`` keys each; a miss replaces the victim of the ``policy``.

    Memory is proportional to the keys held, not to ``sets``.

    Raises ``ValueError`` for fewer than one set or way, or for an unknown policy.
    """

    def __init__(self, sets: int, ways: int, policy: str = "lru"):
        if sets < 1:
            raise ValueError(f"sets must be at least 1, not {sets!r}")
        policy_of(policy, ways)  # raises here, not at the first access
        self.ways = ways
        self.sets = sets
        self._sets: defaultdict[int, Policy] = defaultdict(partial(policy_of, policy, ways))
        self.evicted: Hashable | None = None
        """The key that the last access evicted, or None."""

    def access(self, index: int, key: Hashable) -> bool:
        """Look up ``key`` in set ``index``, and insert it after a miss; return True for a hit.

        Raises ``IndexError`` for an index out of range.
        """
        if not 0 <= index < self.sets:
            raise IndexError(f"index must be between 0 and {self.sets - 1}, not {index!r}")
        held = self._sets[index]
        self.evicted = None
        if key in held:
            held.on_hit(key)
            return True
        self.evicted = held.victim()
        held.on_insert(key)
        return False

    def holds(self, index: int, key: Hashable) -> bool:
        """Return whether ``key`` is in set ``index``, without an access."""
        return key in self._sets.get(index, ())

    def __contains__(self, key: Hashable) -> bool:
        return any(key in held for held in self._sets.values())


class NodeCaches:
    """The caches of all nodes of a cluster, identical and initially empty.

    Parameters
    ----------
    sets, ways: size of each cache; 0 sets disable the caches, which then never hit.
    nodes: number of caches.
    policy: name of the replacement policy.

    ``evictions`` counts the evicted keys.
    """

    def __init__(self, sets: int, ways: int, nodes: int, policy: str = "lru"):
        self.sets = sets
        self._nodes = [CacheSets(sets, ways, policy) for _ in range(nodes)] if sets else []
        self.evictions = 0

    def access(self, owners: np.ndarray, hashes: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Look up each key in order at its owner; return which hit: bool [n].

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
        """Return which keys are held by their owners, without an access: bool [n]."""
        if not self._nodes:
            return np.zeros(len(keys), bool)
        indices = set_of(hashes.astype(np.int64), self.sets)
        return np.array([self._nodes[owner].holds(index, key) for owner, index, key in zip(
            owners.tolist(), indices.tolist(), keys.tolist())], bool)
