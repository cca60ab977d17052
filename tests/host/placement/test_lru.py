"""LRU caches with arrays hit exactly where sets of keys do."""

import numpy as np
import pytest

from host.placement.lru import LruCaches
from host.placement.sets import NodeCaches
from host.placement.shard import key_hash


@pytest.mark.parametrize(("sets", "ways", "nodes"), [(1, 1, 1), (1, 4, 2), (5, 2, 3), (64, 8, 2)])
def test_hits_equal_those_of_sets_over_several_calls(sets, ways, nodes):
    rng = np.random.default_rng(sets)
    plain, caches = NodeCaches(sets, ways, nodes), LruCaches(sets, ways, nodes)
    hits = 0
    for size in (0, 1, 700, 900):
        node = rng.integers(nodes, size=size)
        # Few common keys, which follow themselves, and many rare keys.
        keys = np.where(rng.random(size) < 0.5, rng.integers(3, size=size),
                        rng.integers(2 * sets * ways + 3, size=size))
        hashes = key_hash(keys % 7, keys)
        found = caches.access(node, hashes, keys)
        assert found.tolist() == plain.access(node, hashes, keys).tolist()
        hits += int(found.sum())
    assert 0 < hits < 1601


def test_caches_of_no_sets_never_hit():
    keys = np.zeros(3, np.int64)
    assert not LruCaches(0, 4, 2).access(keys, key_hash(keys, keys), keys).any()
