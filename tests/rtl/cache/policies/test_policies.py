"""Properties of each replacement policy, and agreement of its model with the hardware."""

import random

import pytest

from host.placement import policies as models
from rtl.cache.policies import policy_of
from rtl.config import POLICY_CODES, CachePolicy
from tests.rtl.cache.policies.oldest import add_oldest
from tests.rtl.cache.policies.stepping import stepped

EACH = pytest.mark.parametrize("name", [*POLICY_CODES, "oldest"])


@pytest.fixture(autouse=True)
def _oldest(monkeypatch):
    add_oldest(monkeypatch)


def first_free(valid: int) -> int:
    """Return, one-hot, the lowest way that is not valid."""
    return ~valid & valid + 1


@EACH
@pytest.mark.parametrize("ways", [1, 2, 4])
def test_what_holds_in_every_state_that_can_be(name, ways):
    """From a cleared set, by all lookups there can be."""
    def script(step):
        full = (1 << ways) - 1
        seen, new = {(0, 0)}, [(0, 0)]

        def reach(state: int, valid: int) -> None:
            if (state, valid) not in seen:
                seen.add((state, valid))
                new.append((state, valid))

        while new:
            state, valid = new.pop()
            none = step(state, valid)
            victim = none.victim
            assert victim.bit_count() == 1, "the victim is one way"
            assert valid == full or victim == first_free(valid), "invalid ways go first"
            assert none.after == none.composed == state, "no event changes nothing"
            for way in (1 << w for w in range(ways) if valid >> w & 1):
                found = step(state, valid, hit=way)
                renewed = step(state, valid, hit=way, inserted=way)
                assert found.after == found.composed == renewed.after == renewed.composed
                reach(found.after, valid)
            for distant in (0, 1):
                taken = step(state, valid, inserted=victim, distant=distant)
                assert taken.after == taken.composed
                reach(taken.after, valid | victim)
        assert full in {valid for _, valid in seen}

    stepped(policy_of(name, ways), script)


@EACH
@pytest.mark.parametrize("ways", [1, 2, 4, 8, 16])
def test_the_model_decides_alike(name, ways):
    """Lookups of one set, with some between that only look, as a conflict miss does."""
    def script(step):
        rng, evictions = random.Random(ways), 0
        for _ in range(4):
            model, state, keys = models.policy_of(name, ways), 0, [-1] * ways
            for _ in range(150):
                key = min(int(rng.paretovariate(0.4)), 3 * ways)
                valid = sum(1 << w for w, held in enumerate(keys) if held >= 0)
                victim = step(state, valid).victim.bit_length() - 1
                held = keys[victim]
                assert model.victim() == (held if held >= 0 else None)
                assert (key in model) == (key in keys)
                if key in keys:
                    way = 1 << keys.index(key)
                    state = step(state, valid, hit=way, inserted=rng.choice((0, way))).after
                    model.on_hit(key)
                elif rng.random() < 0.8:
                    state = step(state, valid, inserted=1 << victim).after
                    model.on_insert(key)
                    evictions += held >= 0
                    keys[victim] = key
        assert evictions > 20

    stepped(policy_of(name, ways), script)


def test_the_numbers_stay():
    assert CachePolicy.LRU == 0


@pytest.mark.parametrize("of", [policy_of, models.policy_of])
def test_names_and_ways_are_checked(of):
    with pytest.raises(ValueError, match=f"one of {', '.join(POLICY_CODES)}, not 'belady'"):
        of("belady", 4)
    with pytest.raises(ValueError, match="ways must be at least 1, not 0"):
        of("lru", 0)


def test_ways_are_an_integer():
    with pytest.raises(TypeError, match=r"ways must be an integer, not 4\.0"):
        policy_of("lru", 4.0)
