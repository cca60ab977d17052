"""The fewest bytes on the network: by hand, and against a count key by key."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from host.model import Model
from host.placement.least import LeastBytes
from host.placement.pooling import ForeignBags, Wire
from host.placement.sets import CacheSets, set_of
from host.placement.shard import ShardPlan, key_hash
from host.wire.bags import NARROW_ROWS
from rtl.formats import PoolPlace
from tests.host.placement.test_pooling import MODEL, batches, one_table_bags

SETS, WAYS = 8, 4
WIRE = Wire(64, vectors=4, words=40)


def missed(plan: ShardPlan, mini_batches, looked_up: list[bool]) -> Counter:
    """Return the rows that remote caches miss by requester, owner and table."""
    caches, found = [CacheSets(SETS, WAYS) for _ in range(plan.nodes)], Counter()
    for batch in mini_batches:
        for node, share in enumerate(batch.shares(plan.nodes)):
            owners = plan.owner_of(share.tables, share.rows, node)
            places = set_of(key_hash(share.tables, share.rows).astype(np.int64), SETS)
            for table, row, owner, place in zip(
                    share.tables.tolist(), share.rows.tolist(), owners.tolist(), places.tolist()):
                if owner != node and looked_up[table] and not caches[node].access(
                        place, (table, row)):
                    found[node, owner, table] += 1
    return found


@pytest.mark.parametrize(("placement", "pools"), [
    ("even", [0] * 8), ("even", [1, 0] * 4), ("row", [0] * 8)])
def test_bytes_equal_a_count_of_keys(placement, pools):
    plan = ShardPlan.deal(MODEL, 3, placement)
    mine, size = batches(), WIRE.vector_bytes + 2
    every, some = (missed(plan, mine, looked_up) for looked_up in (
        [True] * 8, [not pool for pool in pools]))
    asked, answered = (np.zeros((2, 8, 3, 3), np.int64) for _ in range(2))
    for counts, at_owner in ((every, True), (some, False)):
        for (node, owner, table), count in counts.items():
            if bool(pools[table]) == at_owner:
                asked[0, table, node, owner] += 8 * count
                answered[0, table, node, owner] += count
    for batch in mine if placement == "even" else ():
        for node, share in enumerate(batch.shares(3)):
            for lengths in share.bag_lengths.tolist():
                for table, keys in enumerate(lengths):
                    owner = plan.tables[table].owner
                    if keys and owner != node:
                        asked[1, table, node, owner] += 8 + 4 * keys
                        answered[1, table, node, owner] += 1
    found = LeastBytes.of(ForeignBags(plan, mine), WIRE, [PoolPlace(pool) for pool in pools],
                          SETS, WAYS)
    total = (asked + size * answered).sum(axis=(2, 3))
    place = (total[1] < total[0]).astype(int) * (placement == "even")
    assert found.tables.tolist() == total[place, range(8)].tolist()
    assert set(place) == ({0, 1} if placement == "even" else {0})
    asks, answers = (each[place, range(8)].sum(axis=0) for each in (asked, answered))
    assert found.payload.tolist() == [
        (asks.sum(axis=1) + size * answers.sum(axis=0)).tolist(),
        (asks.sum(axis=0) + size * answers.sum(axis=1)).tolist()]
    assert found.payload[0].sum() == found.payload[1].sum() == found.tables.sum()
    assert found.headers.tolist() == [
        [vectors * (128 - 8) // 4 + words // 8 * 64 // 40
         for vectors, words in zip(answers.sum(axis=way).tolist(),
                                   asks.sum(axis=1 - way).tolist())] for way in (0, 1)]


def test_weights_and_long_rows_need_more_bytes():
    bags = [[[1, 2, 3]], [[4, 5, 6]]] + [[[]]] * 2
    samples = one_table_bags([[len(bag) for bag in sample] for sample in bags], bags)
    model = replace(MODEL, rows=(99,), bags=((0, 3),), dimensions=(), poolings=())

    def bytes_of(**changes) -> list[int]:
        plan = ShardPlan.deal(replace(model, **changes), 2, "1")
        found = LeastBytes.of(ForeignBags(plan, [samples]), Wire(64), [PoolPlace.OWNER], 0, 0)
        assert found.headers.tolist() == [[0, 0], [0, 0]]
        return found.payload.tolist()

    # Node 0 sends two heads and six keys; node 1 two vectors with a tag.
    assert bytes_of() == [[2 * 8 + 6 * 4, 2 * 66], [2 * 66, 2 * 8 + 6 * 4]]
    assert bytes_of(rows=(NARROW_ROWS + 1,))[0] == [2 * 8 + 6 * 8, 2 * 66]
    assert bytes_of(weighted_tables=(0,))[0] == [2 * 8 + 6 * 8, 2 * 66]


def test_short_vectors_need_fewer_headers():
    """Tables 0 and 1 pool at node 1: vectors of a beat, 21 in a packet, and of 4 beats, 5."""
    bags = [[[1, 2, 3, 4], [1, 2, 3, 4]]] * 40 + [[[], []]] * 40
    samples = one_table_bags([[len(bag) for bag in sample] for sample in bags], bags)
    model = Model((99, 99), 16, 1, (16,), (1,), interaction="cat", dimensions=(16, 64))
    plan = ShardPlan.deal(model, 2, "1,1")
    found = LeastBytes.of(ForeignBags(plan, [samples]), Wire(256, 5, 176, (1, 4)),
                          [PoolPlace.OWNER] * 2, 0, 0)
    vectors, heads = 40 * (128 - 42) // 21 + 40 * (128 - 10) // 5, 80 * 3 * 64 // 176
    assert found.headers.tolist() == [[heads, vectors], [vectors, heads]]
    assert found.tables.tolist() == [40 * (64 + 2 + 24), 40 * (256 + 2 + 24)]


def test_excess_leaves_out_headers():
    least = LeastBytes(np.array([300]), np.array([[100, 200], [200, 100]]),
                       np.array([[10, 20], [20, 10]]))
    moved = np.array([[120, 240], [220, 140]])
    assert least.excess(moved) == pytest.approx(330 / 300)
    assert least.busiest(moved) == (0, 1, pytest.approx(220 / 200))
