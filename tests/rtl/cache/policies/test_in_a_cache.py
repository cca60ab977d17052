"""A cache decides by its configured policy, from the configuration down to its sets."""

import random

import pytest

from rtl.cache import LocalCache, RemoteCache
from rtl.cache.cache import EmbeddingCache
from rtl.config import preset
from rtl.dedupe import DedupeTable
from tests.rtl.cache.driver import check_decisions, make, run
from tests.rtl.cache.policies.oldest import add_oldest


@pytest.mark.parametrize("enable", [1, 0])
def test_decisions_are_those_of_the_policy(monkeypatch, enable):
    add_oldest(monkeypatch)
    rng = random.Random(enable)
    keys = [int(rng.paretovariate(0.5)) % 40 for _ in range(400)]
    result = run(make(policy="oldest"), keys, sets=3, enable=enable, merge=1, latency=(1, 4))
    assert result.counters["evictions"] > 50
    check_decisions(result, 3, 4, enable=enable, policy="oldest")
    with pytest.raises(AssertionError, match="access"):
        check_decisions(result, 3, 4, enable=enable)


def test_the_configuration_names_the_policy_of_both_caches(monkeypatch):
    add_oldest(monkeypatch)
    named = []
    monkeypatch.setattr(EmbeddingCache, "__init__", lambda cache, *_, policy, **rest: (
        named.append(policy), _stop()))
    config = preset("tiny").with_fields(policy="oldest")
    for block in (LocalCache, RemoteCache, DedupeTable):
        with pytest.raises(_Stopped):
            block(config).elaborate(None)
    assert named == ["oldest", "oldest", "lru"]


class _Stopped(Exception):
    pass


def _stop():
    raise _Stopped
