"""The choice of pool places: foreign bags, keys and rows, bytes, and the fewest bytes."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from host.batching.repeats import REPEATS
from host.data.generator import generate
from host.model import Model, load_model
from host.placement.pooling import ForeignBags, Wire, choose_pools, pool_obstacles
from host.placement.sets import CacheSets, set_of
from host.placement.shard import ShardPlan, key_hash
from host.samples import Samples, concatenate, rechunk
from host.wire.bags import NARROW_ROWS
from rtl.config import preset
from rtl.formats import PoolPlace

OWNER, REQUESTER = PoolPlace.OWNER, PoolPlace.REQUESTER
MODEL = load_model("multi_hot")


def batches(model: Model = MODEL, samples: int = 90, mini_batch: int = 40) -> list[Samples]:
    return list(rechunk(generate(model, samples, 3), mini_batch))


def counted(plan: ShardPlan, mini_batches: list[Samples], looked_up: list[bool], sets: int,
            ways: int) -> dict[str, list[int]]:
    """Return the members of `ForeignBags` and the missed rows, one bag after another."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(plan.tables))
    caches = [CacheSets(sets, ways) if sets else None for _ in range(plan.nodes)]
    for batch in mini_batches:
        for node, share in enumerate(batch.shares(plan.nodes)):
            seen = set()
            for number, ends in enumerate(zip(share.bag_offsets, share.bag_offsets[1:])):
                table, (first, last) = number % len(plan.tables), ends
                foreign = [int(row) for row in share.rows[first:last] if plan.owner_of(
                    np.array([table]), np.array([row]), node)[0] != node]
                found["longest"][table] = max(found["longest"][table], last - first)
                found["bags"][table] += bool(foreign)
                wide = plan.tables[table].rows > NARROW_ROWS
                found["words"][table] += bool(foreign) * (
                    1 + (last - first if wide else (last - first + 1) // 2)
                    + plan.tables[table].weighted * ((last - first + 1) // 2))
                for row in foreign:
                    found["keys"][table] += 1
                    found["rows"][table] += (table, row) not in seen
                    seen.add((table, row))
                    if looked_up[table]:
                        index = set_of(int(key_hash(np.array([table]), np.array([row]))[0]), sets)
                        cache = caches[node]
                        found["missed"][table] += cache is None or not cache.access(
                            index, (table, row))
    return found


@pytest.mark.parametrize(("nodes", "placement", "copied", "sets"), [
    (2, "even", 0, 4), (3, "even", 2000, 0), (3, "row", 0, 4), (1, "even", 0, 4)])
def test_counts_equal_a_count_bag_by_bag(nodes, placement, copied, sets):
    plan = ShardPlan.deal(MODEL, nodes, placement).with_copies(copied)
    looked_up = [table % 3 != 1 for table in range(MODEL.tables)]
    wanted = counted(plan, batches(), looked_up, sets, 4)
    foreign = ForeignBags(plan, batches())
    for name in ("bags", "keys", "rows", "words", "longest"):
        assert getattr(foreign, name).tolist() == wanted[name], name
    missed = foreign.missed_rows(np.array(looked_up), sets, 4)
    assert missed.tolist() == wanted["missed"] and (missed <= foreign.keys).all()
    assert (nodes > 1) == bool(foreign.keys.sum())


def test_words_of_a_table_of_more_than_32_bits():
    model = replace(MODEL, rows=(NARROW_ROWS + 1, *MODEL.rows[1:]))
    plan = ShardPlan.deal(model, 2)
    mine = [batch for batch in batches()]
    narrow = ForeignBags(plan, mine).words
    assert narrow.tolist() == counted(plan, mine, [False] * 8, 0, 4)["words"]
    weighted = ShardPlan.deal(replace(model, weighted_tables=(0, 2)), 2)
    assert weighted.weighted.tolist() == [True, False, True] + [False] * 5
    heavy = ForeignBags(weighted, mine).words
    assert heavy.tolist() == counted(weighted, mine, [False] * 8, 0, 4)["words"]
    assert (heavy > narrow).tolist() == weighted.weighted.tolist()


def test_tables_that_need_their_owner_pool_there():
    plan, free = ShardPlan.deal(MODEL, 2), [None] * 8
    foreign = ForeignBags(plan, batches())
    wire, needed = Wire(64), np.arange(8) == 0  # bags of a key
    assert choose_pools(foreign, wire, free, 4, 4)[0] == REQUESTER
    assert choose_pools(foreign, wire, free, 4, 4, needed)[0] == OWNER
    assert choose_pools(foreign, wire, ["hashed"] * 8, 4, 4, needed) == [REQUESTER] * 8


def test_bytes_by_hand():
    count = np.array([10, 0])
    wire = Wire(512, vectors=2, words=176)
    assert Wire(512).requester_bytes(count).tolist() == [5220, 0]
    assert Wire(512).owner_bytes(count, 3 * count).tolist() == [5140 + 240, 0]
    # Two vectors share a header and a beat of tags, of which they use 4 bytes.
    assert wire.vector_headers(count, wire.vectors).tolist() == [10 * 124 // 2, 0]
    assert wire.word_headers(3 * count).tolist() == [30 * 64 // 176, 0]
    assert Wire(512).vector_headers(count, 0).tolist() == [0, 0]
    assert Wire(512).word_headers(count).tolist() == [0, 0]


def one_table_bags(lengths: list[list[int]], rows: list[list[list[int]]]) -> Samples:
    """Return samples of bags by sample and table."""
    counts = np.array(lengths, np.int32)
    tables = np.repeat(np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts)),
                       counts.reshape(-1))
    flat = np.array([row for sample in rows for bag in sample for row in bag], np.int64)
    return Samples(np.zeros((len(counts), 1), np.float32), np.zeros(len(counts), np.float32),
                   counts, tables, flat)


def test_a_table_moves_to_its_owner_only_where_bytes_are_fewer():
    # Node 0 has samples 0 and 1; tables 0 to 2 are of node 1. Table 0: equal bags of three rows,
    # which the cache serves the second time. Table 1: distinct rows. Table 2: bags of a row.
    bags = [[[1, 2, 3], [10, 11, 12], [5]], [[1, 2, 3], [13, 14, 15], [6]]] + [[[], [], []]] * 2
    samples = one_table_bags([[len(bag) for bag in sample] for sample in bags], bags)
    model = Model((99, 99, 99), 16, 1, (16,), (1,))
    plan = ShardPlan.deal(model, 2, "1,1,1")
    foreign = ForeignBags(plan, [samples])
    assert foreign.bags.tolist() == [2, 2, 2] and foreign.rows.tolist() == [3, 6, 2]
    free = [None] * 3
    # A cache of 64 sets misses three rows of table 0: 222 bytes against 2 bags of 90 bytes.
    assert choose_pools(foreign, Wire(64), free, 64, 8) == [OWNER, OWNER, REQUESTER]
    # Vectors of 4 bytes: 42 bytes of rows against 60 bytes of bags; but 84 and 84 without a cache.
    assert choose_pools(foreign, Wire(4), free, 64, 8) == [REQUESTER, OWNER, REQUESTER]
    assert choose_pools(foreign, Wire(4), free, 0, 8) == [OWNER, OWNER, REQUESTER]
    kept = [None, "a reason", None]
    assert choose_pools(foreign, Wire(64), kept, 64, 8) == [OWNER, REQUESTER, REQUESTER]
    # In training, two terms of the sum of each row of table 0 travel, or two bags with gradients.
    trained = ForeignBags(plan, [samples], reducer=preset("tiny"))
    assert foreign.partials is None and trained.partials.tolist() == [6, 6, 2]
    assert Wire(8).partial_bytes(trained.partials).tolist() == [96, 96, 32]
    assert Wire(8).gradient_bytes(trained.bags, trained.words).tolist() == [64, 64, 48]
    # Packets of 11 words, with a header of 64 bytes, hold two bags of 4 words.
    assert Wire(8, words=11).gradient_bytes(trained.bags, trained.words)[0] == 64 + 64
    # 54 bytes of rows and 96 of sums, against 68 of bags and 64 of gradients.
    assert choose_pools(foreign, Wire(8), free, 64, 8)[0] == REQUESTER
    assert choose_pools(trained, Wire(8), free, 64, 8)[0] == OWNER


def test_tables_that_cannot_pool_at_the_owner_have_a_reason():
    config = preset("tiny")
    plan = ShardPlan.deal(MODEL, 2)
    assert pool_obstacles(plan, config, [1, 254, 255, 1, 1, 1, 1, 1]) == [
        None, None, "its bags must have at most 254 keys with query_beats 32, not 255",
        *[None] * 5]
    assert pool_obstacles(ShardPlan.deal(MODEL, 2, "row"), config, [1] * 8) == [
        "its rows are hashed over 2 nodes"] * 8


@pytest.mark.parametrize("sets", [2, 16, 512])
def test_the_choice_is_as_good_as_each_table_alone_could_make_it(sets):
    """No table at the requester gains at its owner; the choice beats both uniform plans."""
    plan = ShardPlan.deal(MODEL, 4)
    foreign = ForeignBags(plan, batches(samples=200, mini_batch=64))
    wire = Wire(64, vectors=20, words=176)
    pools = choose_pools(foreign, wire, [None] * 8, sets, 8)
    assert {OWNER, REQUESTER} == set(pools)
    chosen = foreign.bytes_of(wire, pools, sets, 8)
    for table, place in enumerate(pools):
        if place == REQUESTER:
            assert chosen.at_requester[table] <= chosen.at_owner[table]
    for same in (OWNER, REQUESTER):
        uniform = [same] * 8
        total = foreign.bytes_of(wire, uniform, sets, 8).chosen(uniform).sum()
        assert chosen.chosen(pools).sum() <= total


def test_mini_batches_are_counted_one_after_another():
    """Rows are distinct within a share of a mini-batch; the caches keep rows between them."""
    plan, parts = ShardPlan.deal(MODEL, 2), batches(samples=80, mini_batch=40)
    foreign, whole = ForeignBags(plan, parts), ForeignBags(plan, [concatenate(parts)])
    assert foreign.keys.sum() > foreign.rows.sum()
    every = np.ones(8, bool)
    assert (foreign.missed_rows(every, 4096, 8) < foreign.rows).any()
    assert whole.longest.tolist() == foreign.longest.tolist()


@pytest.mark.parametrize("repeats", REPEATS)
def test_bags_that_are_not_sent_are_not_counted(repeats):
    bags = [[[1, 2, 3], [7]], [[1, 2, 3], [8]], [[4, 5, 6], [7]], [[1, 2, 3], [7]]]
    lengths = [[len(bag) for bag in sample] for sample in bags]
    samples = one_table_bags(lengths + [[0, 0]] * 4, bags + [[[], []]] * 4)
    plan = ShardPlan.deal(Model((99, 99), 16, 1, (16,), (1,)), 2, "1,1")
    foreign = ForeignBags(plan, [samples], repeats)
    counts = {"send": [4, 4], "neighbours": [3, 3], "indices": [2, 2]}[repeats]
    assert foreign.bags.tolist() == counts and foreign.rows.tolist() == [6, 2]
    assert foreign.keys.tolist() == [3 * counts[0], counts[1]]
    # A large cache serves the first table's repeats: rows of 444 bytes, or bags of 90 bytes each.
    choice = choose_pools(foreign, Wire(64), [None] * 2, 64, 8)
    assert choice == [OWNER, REQUESTER]
    # 96 bytes of rows; bags of 38 bytes.
    dear = choose_pools(foreign, Wire(6), [None] * 2, 64, 8)
    assert dear == [OWNER if repeats == "indices" else REQUESTER, REQUESTER]
