"""Lookups that remote caches keep off the network, against plain models of the same lookups."""

import numpy as np
import pytest

from host.data.generator import generate
from host.placement.sets import CacheSets, set_of
from host.placement.shard import key_hash
from host.samples import rechunk
from host.wire.layouts import unpack
from host.wire.packets import parse_header, parse_records
from rtl.cache.access_tap import Access
from rtl.formats import LookupRecord, Opcode
from sim.job.options import RunOptions
from sim.run.run import Run

BATCH = 64


class _Frames:
    """Observer of the lookups sent over the network and of the times of their answers."""

    def __init__(self, nodes: int):
        self.sent: list[list[tuple]] = [[] for _ in range(nodes)]
        self.again = 0
        self._open: dict[tuple[int, int], tuple] = {}
        self._keys: list[dict] = [{} for _ in range(nodes)]

    def __call__(self, frames) -> None:
        for _, source, frame in frames:
            head = parse_header(frame[0])
            if head.opcode == Opcode.LOOKUPS:
                found = parse_records(LookupRecord, frame[1:], head.count)
                for table, row, miss in zip(*(found[name].tolist()
                                              for name in ("table", "row", "landing"))):
                    self.sent[source].append((table, row))
                    self.again += self._keys[source].get((table, row), 0) > 0
                    self._keys[source][table, row] = self._keys[source].get((table, row), 0) + 1
                    self._open[source, miss] = (table, row)
            elif head.opcode == Opcode.VECTORS:
                requester = head.destination
                for miss in frame[1:2].view("<u2").reshape(-1)[:head.count].tolist():
                    self._keys[requester][self._open.pop((requester, miss))] -= 1


def _run(*settings: str, nodes: int, samples: int = 768, **options):
    job = Run(RunOptions.of(config="kaggle", samples=samples, nodes=nodes, mini_batch=BATCH,
                         threads=1, settings=settings, **options))
    for registers in job.registers:
        registers.write("tap_select", 2)
        registers.finish()
    frames = _Frames(nodes)
    result = job.execute(observer=frames)
    assert result["bit_identical"]
    return job, result, frames


def _foreign_keys(job: Run, samples: int) -> list[list[tuple[int, int, int]]]:
    """Return table, row and hash of the lookups of other nodes' rows at each node, in order."""
    nodes = job.options.workload.nodes
    found: list[list] = [[] for _ in range(nodes)]
    for batch in rechunk(generate(job.model, samples, 1), BATCH):
        shares = [len(batch) * node // nodes for node in range(nodes + 1)]
        for node in range(nodes):
            part = batch.slice(shares[node], shares[node + 1])
            foreign = job.plan.owner_of(part.tables, part.rows, node) != node
            tables = part.tables[foreign].astype(np.int64)
            rows = part.rows[foreign].astype(np.int64)
            found[node] += zip(tables.tolist(), rows.tolist(), key_hash(tables, rows).tolist())
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("nodes", "sets"), [
    pytest.param(4, 0, id="4-all sets"), pytest.param(2, 200, id="2-200 sets"),
    pytest.param(2, 0, id="2-all sets", marks=pytest.mark.slow),
    pytest.param(4, 200, id="4-200 sets", marks=pytest.mark.slow)])
def test_saved_lookups_are_those_of_a_textbook_lru(nodes, sets):
    job, result, frames = _run(f"remote_cache_sets={sets}", nodes=nodes, placement="row",
                               samples=1536, in_flight=1)
    used = sets or job.config.remote_cache_sets
    saved = evicted = 0
    for node, keys in enumerate(_foreign_keys(job, 1536)):
        lru = CacheSets(used, job.config.remote_cache_ways)
        expected = []
        for table, row, value in keys:
            expected.append(lru.access(set_of(value, used), (table, row)))
            evicted += lru.evicted is not None
        log = job.cluster.nodes[node].engine.pop("tap")[0]
        assert unpack(Access, log, "key.row").tolist() == [row for _, row, _ in keys]
        assert unpack(Access, log, "hit").astype(bool).tolist() == expected
        assert result["counters"][node]["remote_cache.conflict_misses"] == 0
        # A packet contains lookups of one owner: their order differs on the wire.
        missed = [key[:2] for key, hit in zip(keys, expected) if not hit]
        assert sorted(frames.sent[node]) == sorted(missed)
        saved += sum(expected)
    assert result["network"]["saved_lookups"] == saved > 1000
    assert result["network"]["saved_bytes"] == saved * (8 + 2 + 64)
    assert result["remote_cache"]["evictions"] == evicted
    assert (evicted > 0) == bool(sets)


@pytest.mark.thorough
def test_merge_sends_a_key_once_while_it_is_on_its_way():
    _, result, merged = _run("remote_cache=false", nodes=4)
    assert merged.again == 0
    assert result["remote_cache"] is None
    assert result["network"]["saved_lookups"] > 1000
    job, result, paper = _run("requester_merge=false", nodes=4)
    # An answer may leave its owner between a lookup's decision and its packet.
    assert 0 < paper.again <= result["remote_cache"]["unmerged"]
    assert sum(map(len, paper.sent)) == result["remote_cache"]["misses"]
    keys = _foreign_keys(job, 768)
    _, result, all_sent = _run("remote_cache=false", "requester_merge=false", nodes=4)
    assert result["network"]["saved_lookups"] == 0
    assert [sorted(sent) for sent in all_sent.sent] == [
        sorted(key[:2] for key in node) for node in keys]


@pytest.mark.thorough
def test_hit_rates_of_the_remote_cache():
    job, result, _ = _run(nodes=4, in_flight=1)
    cache = result["remote_cache"]
    keys = _foreign_keys(job, 768)
    assert cache["accesses"] == sum(map(len, keys))
    assert cache["hit_rate"] == cache["hits"] / cache["accesses"]
    unique = 0
    for batch in rechunk(generate(job.model, 768, 1), BATCH):
        for node in range(4):
            part = batch.slice(len(batch) * node // 4, len(batch) * (node + 1) // 4)
            foreign = job.plan.owner_of(part.tables, part.rows, node) != node
            unique += len({*zip(part.tables[foreign].tolist(), part.rows[foreign].tolist())})
    assert cache["hit_rate_unique"] == 1 - cache["misses"] / unique


@pytest.mark.thorough
def test_one_node_needs_no_remote_cache():
    _, result, _ = _run(nodes=1, samples=64)
    assert result["remote_cache"] is None and result["network"]["saved_lookups"] is None
