"""Rates of the lookup and vector paths on the trace, in cycles.

The rates are measured on a quarter of the trace, with more weight of the cold start, and on the
whole trace, as in ``sim bench``.
"""

import numpy as np
import pytest

from host.measurements.published import flattening
from host.placement.sets import CacheSets, set_of
from host.placement.shard import key_hash
from host.samples import Samples
from rtl.config import preset
from sim.bench.bags import REPEAT_WORDS, bag_samples, owner_rate, requester_rate
from sim.bench.delivery import index_rate, read_rate, ring_rate
from sim.bench.rates import (
    dedupe_rate,
    landing_path_rate,
    local_cache_rate,
    one_key,
    one_set,
    remote_cache_rate,
    store_path_frames,
    trace,
)
from sim.bench.unique import unique_rate

KAGGLE = preset("kaggle")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[2048, 8192])
def samples(request):
    made = trace()
    assert len(made) == 8192 and len(made.rows) == 212_992
    return made.slice(0, request.param)


@pytest.mark.thorough
def test_tag_lookup(samples):
    assert local_cache_rate(KAGGLE, samples).per_cycle >= 0.95
    assert local_cache_rate(KAGGLE, one_key(samples)).per_cycle >= 0.95
    assert local_cache_rate(KAGGLE, samples, sets=1).per_cycle >= 0.95


@pytest.mark.thorough
def test_remote_cache_lookup(samples):
    assert remote_cache_rate(KAGGLE, samples).per_cycle >= 0.95
    assert remote_cache_rate(KAGGLE, one_key(samples)).per_cycle >= 0.95
    assert remote_cache_rate(KAGGLE, samples, sets=1).per_cycle >= 0.95


@pytest.mark.thorough
def test_remote_cache_without_merge(samples):
    """A key in flight is fetched again, at most as many times at once as there are miss ids."""
    merged = remote_cache_rate(KAGGLE, samples)
    apart = remote_cache_rate(KAGGLE, samples, merge=False)
    assert apart.per_cycle >= 0.9
    # The last lookup may end over a cycle sooner, if it does not wait.
    assert apart.cycles >= merged.cycles - 4


@pytest.mark.thorough
def test_dedupe_and_scatter(samples):
    assert dedupe_rate(KAGGLE, samples).per_cycle >= 0.95
    assert dedupe_rate(KAGGLE, one_key(samples)).per_cycle >= 0.95
    crowded = one_set(samples, KAGGLE.dedupe_sets)
    assert dedupe_rate(KAGGLE, crowded, mini_batch=len(samples)).per_cycle >= 0.95


def sent_again(samples: Samples, share: int) -> int:
    """Return how many keys are looked up again in a step after a full set has evicted them."""
    found, ways = 0, KAGGLE.unique_ways
    count = KAGGLE.unique_keys // ways
    places = set_of(key_hash(samples.tables, samples.rows).astype(np.int64), count)
    for first in range(0, len(samples), share):
        sets, sent = CacheSets(count, ways), set()
        part = slice(*samples.key_offsets[[first, min(first + share, len(samples))]])
        for place, key in zip(places[part].tolist(), samples.keys[part].tolist()):
            if not sets.access(place, key):
                found += key in sent
                sent.add(key)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("share", [128, 512])
def test_repeats_in_a_step(samples, share):
    rate, sent, again = unique_rate(KAGGLE, samples, share=share)
    assert rate.per_cycle >= 0.95 and sent < rate.items / 2
    assert again == sent_again(samples, share) < sent / 20


@pytest.mark.thorough
def test_repeats_of_one_key_and_of_one_set(samples):
    assert unique_rate(KAGGLE, one_key(samples))[0].per_cycle >= 0.95
    crowded = one_set(samples, KAGGLE.unique_keys // KAGGLE.unique_ways)
    assert unique_rate(KAGGLE, crowded)[0].per_cycle >= 0.95


@pytest.mark.thorough
def test_delivery_to_gpu_memory_and_from_it(samples):
    assert index_rate(KAGGLE, samples).per_cycle >= 0.95
    assert ring_rate(KAGGLE, lists=50).per_cycle >= 0.79  # the rate of PCIe
    assert read_rate(KAGGLE, rows=2000).per_cycle >= 0.95


@pytest.mark.thorough
def test_store_to_frames_to_hold_buffer(samples):
    rate, frames = store_path_frames(KAGGLE, samples, requesters=1)
    assert rate.per_cycle >= 0.95
    assert landing_path_rate(KAGGLE, frames, len(samples.rows)).per_cycle >= 0.95


@pytest.mark.thorough
def test_store_to_frames_of_four_requesters(samples):
    rate, _ = store_path_frames(KAGGLE, samples, requesters=4)
    assert rate.per_cycle >= 0.95


BAGS = KAGGLE.with_fields(name="kaggle_bags", owner_bags=1024)


@pytest.mark.thorough
@pytest.mark.parametrize("keys, requester, owner", [
    (flattening().hot, 4.5, 5.6), ((20,) * 26, 7.5, 8.7), ((100,) * 26, 11.9, 13.3)],
    ids=["dcnv2", "20 keys", "100 keys"])
def test_bags_that_pool_at_their_owners(keys, requester, owner):
    """Each packet of bags costs the requester a cycle beside its segments."""
    made = bag_samples(np.array(keys), 60_000 // sum(keys))
    asked, most, packets = requester_rate(BAGS, made)
    assert requester <= asked.per_cycle <= most
    assert abs(asked.cycles - asked.items / most - len(packets)) < 0.05 * asked.cycles
    pooled, most = owner_rate(BAGS, len(keys), packets)
    assert pooled.items == asked.items == len(made.rows)
    assert owner <= pooled.per_cycle <= most


@pytest.mark.slow
def test_comparison_of_bags_keeps_the_rate():
    """Repeated bags pass as fast as bags that leave."""
    config = BAGS.with_fields(name="kaggle_repeats", repeat_words=REPEAT_WORDS)
    rate, most, _ = requester_rate(config, bag_samples(np.full(26, 20), 115, run=10))
    assert rate.items == 115 * 26 * 20 and 8.4 <= rate.per_cycle <= most
