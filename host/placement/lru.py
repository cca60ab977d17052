"""LRU caches of all nodes, computed with arrays."""

import numpy as np

from host.placement.sets import set_of

__all__ = ["LruCaches"]


class LruCaches:
    """Set-associative LRU caches: :class:`host.placement.sets.NodeCaches` for many keys.

    Each step looks up a key in every set at once. Memory is 16 bytes per way of all nodes.

    Parameters
    ----------
    sets, ways: size of each cache; 0 sets disable the caches, which then never hit.
    nodes: number of caches.
    """

    def __init__(self, sets: int, ways: int, nodes: int):
        self._sets = sets
        self._keys = np.full((nodes * sets, ways), -1, np.int64)
        self._used = np.zeros((nodes * sets, ways), np.int64)
        self._now = 1

    def access(self, nodes: np.ndarray, hashes: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Look up each key in order at its node; return which hit: bool ``[n]``.

        nodes: int64 ``[n]``. hashes: :func:`host.placement.shard.key_hash` of the keys.
        keys: int64 ``[n]``, at least 0.
        """
        hits = np.zeros(len(keys), bool)
        if not self._sets or not len(keys):
            return hits
        lanes = nodes * self._sets + set_of(hashes.astype(np.int64), self._sets)
        order = np.argsort(lanes, kind="stable")
        lanes, keys = lanes[order], keys[order]
        # A key that follows itself in its set hits and changes nothing.
        moved = np.concatenate(([True], (lanes[1:] != lanes[:-1]) | (keys[1:] != keys[:-1])))
        hits[order[~moved]] = True
        order, keys, lanes = order[moved], keys[moved], lanes[moved]
        starts = np.flatnonzero(np.diff(lanes, prepend=-1))
        lanes, counts = lanes[starts], np.diff(starts, append=len(lanes))
        longest = np.argsort(-counts, kind="stable")
        lanes, starts, counts = lanes[longest], starts[longest], counts[longest]
        active = np.searchsorted(-counts, -np.arange(counts[0]), side="left").tolist()
        held, used, rows = self._keys[lanes], self._used[lanes], np.arange(len(lanes))
        for step, lanes_left in enumerate(active):
            now = starts[:lanes_left] + step
            key = keys[now]
            found = held[:lanes_left] == key[:, None]
            hit = found.any(axis=1)
            way = np.where(hit, found.argmax(axis=1), used[:lanes_left].argmin(axis=1))
            held[rows[:lanes_left], way] = key
            used[rows[:lanes_left], way] = self._now + step
            hits[order[now]] = hit
        self._keys[lanes], self._used[lanes] = held, used
        self._now += len(active)
        return hits
