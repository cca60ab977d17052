"""The LRU order of hardware against a list of the ways, the oldest first."""

import random

import pytest

from rtl.cache.policies import Lru
from tests.rtl.cache.policies.stepping import stepped


@pytest.mark.parametrize("ways", [1, 2, 4, 8, 16])
def test_order_is_that_of_a_list(ways):
    """Any way is used, by a hit or by an insertion: the order knows nothing of the other rules."""
    def script(step):
        rng, model, state = random.Random(ways), list(range(ways)), 0
        for _ in range(300):
            way = rng.randrange(ways + 1)
            used = 1 << way if way < ways else 0
            by = rng.choice(({"hit": used}, {"inserted": used}, {"hit": used, "inserted": used}))
            found = step(state, rng.getrandbits(ways), **by)
            assert found.victim == 1 << model[0]
            assert found.after == found.composed
            state = found.after
            if used:
                model.remove(way)
                model.append(way)

    stepped(Lru(ways), script)


@pytest.mark.parametrize("ways, bits", [(1, 1), (2, 1), (4, 6), (8, 28), (16, 120)])
def test_a_bit_for_each_pair(ways, bits):
    assert Lru(ways).bits == bits
