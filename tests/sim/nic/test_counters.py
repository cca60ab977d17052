"""Counters in the registers against plain models of the same accesses."""

import numpy as np
import pytest

from host.data.generator import generate
from host.placement.sets import CacheSets, set_of
from host.placement.shard import key_hash
from host.samples import rechunk
from host.wire.layouts import unpack
from rtl.cache.access_tap import Access
from sim.job.options import RunOptions
from sim.run.run import Run


def _run(**options) -> tuple[Run, dict, list[np.ndarray]]:
    """Run with the access tap on; return the accesses of each node's local cache.

    The remote caches are off: every lookup reaches its owner.
    """
    settings = (*options.pop("settings", ()), "remote_cache=false", "requester_merge=false")
    job = Run(RunOptions.of(threads=1, settings=settings, **options))
    for registers in job.registers:
        registers.write("tap_select", 1)
        registers.finish()
    result = job.execute()
    return job, result, [node.engine.pop("tap")[0] for node in job.cluster.nodes]


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("settings", [(), ("local_cache_sets=500",), ("local_cache_sets=250",)],
                         ids=["all sets", "500 sets", "250 sets"])
def test_local_cache_is_a_textbook_lru(settings):
    job, result, logs = _run(samples=1024, nodes=2, in_flight=1, mini_batch=32,
                             settings=settings, placement="row")
    sets = job.simulation.runtime.local_cache_sets or job.config.local_cache_sets
    checked = evictions = 0
    for log, counters in zip(logs, result["counters"]):
        assert counters["access_tap.lost"] == 0
        assert counters["local_cache.conflict_misses"] == 0
        tables = unpack(Access, log, "key.table").astype(np.int64)
        rows = unpack(Access, log, "key.row").astype(np.int64)
        hashes = key_hash(tables, rows).tolist()
        lru = CacheSets(sets, job.config.local_cache_ways)
        expected = []
        for value, table, row in zip(hashes, tables.tolist(), rows.tolist()):
            expected.append(lru.access(set_of(value, sets), (table, row)))
            evictions += lru.evicted is not None
        assert unpack(Access, log, "hit").astype(bool).tolist() == expected
        assert counters["local_cache.accesses"] == len(expected)
        assert counters["local_cache.hits"] == sum(expected)
        checked += len(expected)
    assert checked > 5000
    assert (evictions > 0) == bool(settings)
    assert sum(c["local_cache.evictions"] for c in result["counters"]) == evictions


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [2, 4])
def test_dedupe_is_numpy_unique(nodes):
    options = {"samples": 1024, "nodes": nodes, "in_flight": 1, "placement": "row"}
    job, result, _ = _run(**options)
    assert result["dedupe"]["retired_early"] == 0
    batches = list(rechunk(generate(job.model, 1024, 1), 128))
    for node, counters in enumerate(result["counters"]):
        unique = requests = 0
        for samples in batches:
            owned = job.plan.owner_of(samples.tables, samples.rows) == node
            unique += len(np.unique(samples.keys[owned]))
            requests += int(owned.sum())
        assert counters["dedupe.unique"] == unique
        assert counters["dedupe.requests"] == requests
