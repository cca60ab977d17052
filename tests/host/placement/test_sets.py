"""Textbook caches: sets of keys, and the caches of a cluster's nodes."""

import random

import numpy as np
import pytest

from host.placement.sets import CacheSets, NodeCaches, set_of
from rtl.config import POLICY_CODES


@pytest.mark.parametrize("ways", [1, 2, 8])
def test_sets_are_lists_with_the_newest_last(ways):
    rng = random.Random(ways)
    cache, plain = CacheSets(3, ways), [[] for _ in range(3)]
    for _ in range(3000):
        index, key = rng.randrange(3), rng.randrange(2 * ways + 1)
        lines, evicted = plain[index], None
        hit = key in lines
        if hit:
            lines.remove(key)
        elif len(lines) == ways:
            evicted = lines.pop(0)
        lines.append(key)
        assert cache.access(index, (index, key)) == hit
        assert cache.evicted == (None if evicted is None else (index, evicted))
        assert all((index, k) in cache for k in lines)


@pytest.mark.parametrize("sets", [1, 7, 512, 4096])
def test_hashes_fall_evenly_on_any_number_of_sets(sets):
    counts = [0] * sets
    for k in range(sets * 8):
        counts[set_of((k * (1 << 32) // (sets * 8)) & 0xFFFFFFFF, sets)] += 1
    assert sum(counts) == sets * 8 and max(counts) - min(counts) <= 2
    assert set_of(0xFFFFFFFF, sets) == sets - 1 and set_of(255, sets) == 0


def test_an_access_by_hand():
    model = CacheSets(2, 2)
    assert [model.access(0, key) for key in "abacb"] == [False, False, True, False, False]
    assert model.evicted == "a" and "c" in model and "a" not in model
    assert not model.access(1, "a") and model.evicted is None
    assert model.holds(1, "a") and not model.holds(1, "b")
    assert [set_of(0xFFFFFF00, 5), set_of(0, 5), set_of(0x80000000, 5)] == [4, 0, 2]


def test_bad_sizes_are_refused():
    for sets, ways, name in ((0, 1, "sets"), (1, 0, "ways")):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
            CacheSets(sets, ways)
    with pytest.raises(ValueError, match=f"one of {', '.join(POLICY_CODES)}, not 'belady'"):
        CacheSets(1, 1, "belady")


def test_caches_of_nodes():
    caches = NodeCaches(1, 2, 2)
    owners, keys = np.array([0, 1, 0, 0, 0, 1]), np.array([5, 5, 6, 5, 7, 5])
    assert caches.access(owners, np.zeros(6, np.uint32), keys).tolist() == [
        False, False, False, True, False, True]
    assert caches.evictions == 1
    assert caches.access(np.array([0]), np.zeros(1, np.uint32), np.array([6])).tolist() == [False]
    off = NodeCaches(0, 0, 2)
    assert off.access(owners, np.zeros(6, np.uint32), keys).tolist() == [False] * 6
    assert off.evictions == 0
