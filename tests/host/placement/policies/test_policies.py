"""The models of replacement policies against lists."""

import random

import pytest

from host.placement.policies import Lru


@pytest.mark.parametrize("ways", [1, 2, 8])
def test_lru_is_a_list_with_the_newest_last(ways):
    rng, model, plain = random.Random(ways), Lru(ways), []
    for _ in range(1000):
        assert model.victim() == (plain[0] if len(plain) == ways else None)
        key = rng.randrange(2 * ways + 1)
        assert (key in model) == (key in plain)
        if key in plain:
            plain.remove(key)
            model.on_hit(key)
        else:
            model.on_insert(key, distant=bool(key & 1))
            if len(plain) == ways:
                del plain[0]
        plain.append(key)
