import numpy as np
import pytest

from host.model import MODELS, Model
from host.placement.shard import Placement, ShardPlan, foreign_keys, key_hash
from host.samples import Samples
from rtl.formats import DescriptorKind, PoolPlace, TableDescriptor
from rtl.keys.hash_columns import key_hash as plain_hash


def test_hash_is_the_hardwares():
    rng = np.random.default_rng(0)
    tables, rows = rng.integers(0, 4096, 300), rng.integers(0, 1 << 36, 300)
    assert key_hash(tables, rows).tolist() == [
        plain_hash(int(t), int(r)) for t, r in zip(tables, rows)]


@pytest.mark.parametrize("placement", ["even", "rows", "lookups"])
@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 26])
def test_whole_tables_are_dealt_once(nodes, placement):
    model = MODELS["kaggle"]
    plan = ShardPlan.deal(model, nodes, placement, range(26))
    assert [t.rows for t in plan.tables] == list(model.rows)
    assert all(t.kind == DescriptorKind.TABLE for t in plan.tables)
    assert sum(plan.rows_held()) == sum(model.rows)
    tables = np.arange(26)
    assert plan.owner_of(tables, tables).tolist() == [t.owner for t in plan.tables]


def test_every_node_has_as_many_tables_as_any_other_by_default():
    plan = ShardPlan.deal(MODELS["kaggle"], 4)
    assert plan == ShardPlan.deal(MODELS["kaggle"], 4, "even")
    owners = [table.owner for table in plan.tables]
    assert sorted(np.bincount(owners).tolist()) == [6, 6, 7, 7]
    # By hand: 10.1, 8.4, 7.0 and 5.5 M rows first, then 2.2 M to the node with the fewest.
    assert [owners[t] for t in (2, 11, 20, 15, 3)] == [0, 1, 2, 3, 3]


def test_rows_are_balanced_on_request():
    plan = ShardPlan.deal(MODELS["kaggle"], 4, "rows")
    owners = [table.owner for table in plan.tables]
    assert np.bincount(owners).tolist() == [1, 1, 22, 2]
    assert [owners[t] for t in (2, 11, 20, 15, 3)] == [0, 1, 2, 3, 3]


def test_lookups_are_balanced_on_request():
    model = Model((10, 20, 30, 40, 50), 4, 1, (4,), (1,))
    plan = ShardPlan.deal(model, 2, "lookups", [1, 7, 0, 5, 3])
    # 7; 5; 3 to the 5; 1 to the 7: 8 and 8; 0 to the fewest rows, 20 + 10.
    assert [table.owner for table in plan.tables] == [0, 0, 0, 1, 1]


def test_rows_are_hashed_evenly_on_request_and_when_nodes_exceed_tables():
    assert all(t.kind == DescriptorKind.ROW and t.owners == 4
               for t in ShardPlan.deal(MODELS["kaggle"], 4, "row").tables)
    plan = ShardPlan.deal(MODELS["movielens"], 3)
    assert all(t.kind == DescriptorKind.ROW for t in plan.tables)
    rows = np.arange(60_000)
    owners = plan.owner_of(np.ones(60_000, int), rows)
    assert owners[:200].tolist() == [(plain_hash(1, r) & 0xFFFF) * 3 >> 16 for r in range(200)]
    assert np.abs(np.bincount(owners, minlength=3) / 20_000 - 1).max() < 0.05


def test_replicated_tables_answer_at_the_requester():
    plan = ShardPlan(4, (Placement(DescriptorKind.REPLICATED, 10),
                         Placement(DescriptorKind.ROW, 10, 2, 2),
                         Placement(DescriptorKind.TABLE, 10, 3)))
    got = plan.owner_of(np.array([0, 0, 2, 1]), np.array([1, 2, 3, 4]), np.array([3, 1, 0, 0]))
    assert got.tolist() == [3, 1, 3, 2 + ((plain_hash(1, 4) & 0xFFFF) * 2 >> 16)]
    assert plan.rows_held() == [10, 10, 15, 25]


def test_nodes_that_are_given_hold_tables_where_nodes_exceed_them_and_where_others_are_copied():
    plan = ShardPlan.deal(MODELS["movielens"], 4, "3,1")
    assert [(table.kind, table.owner) for table in plan.tables] == [
        (DescriptorKind.TABLE, 3), (DescriptorKind.TABLE, 1)]
    least = min(MODELS["movielens"].rows)
    kept = [table for table in plan.with_copies(least).tables
            if table.kind == DescriptorKind.TABLE]
    assert len(kept) == 1 and kept[0] in plan.tables


def test_descriptor_words_read_back_through_the_layout():
    plan = ShardPlan(9, (Placement(DescriptorKind.ROW, (7 << 32) + 5, 2, 6),
                         Placement(DescriptorKind.TABLE, 9, 8)))
    words = plan.descriptors()
    assert words.shape == (2, 5) and words.dtype == np.uint32
    bits = int.from_bytes(words[0].astype("<u4").tobytes(), "little")
    record = TableDescriptor.from_bits(bits)
    assert (record.valid, record.kind, record.owner, record.owners) == (1, 1, 2, 6)
    assert (record.rows_low, record.rows_high, record.base) == (5, 7, 0)


def _pooled() -> ShardPlan:
    """Return a plan of four tables, the last three pooled at their owners."""
    return ShardPlan(3, (
        Placement(DescriptorKind.ROW, 9, 0, 3), Placement(DescriptorKind.TABLE, 7, 2),
        Placement(DescriptorKind.REPLICATED, 5), Placement(DescriptorKind.TABLE, 1 << 33, 1),
    )).with_pools([PoolPlace.REQUESTER] + 3 * [PoolPlace.OWNER])


def test_descriptors_have_the_place_of_pooling():
    plan = ShardPlan(2, (Placement(DescriptorKind.TABLE, 5, 1, pool=PoolPlace.OWNER, beats=4),
                         Placement(DescriptorKind.TABLE, 5, 1, mean=True, beats=4)))
    bits = [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in plan.descriptors()]
    # Word 0: valid, kind at bit 1, pool at bit 3, mean at bit 4, owner at bit 8, owners, number of
    # the last beat of a bag's vector.
    assert [value & 0xFFFFFFFF for value in bits] == [
        1 | 1 << 3 | 1 << 8 | 1 << 16 | 3 << 24, 1 | 1 << 4 | 1 << 8 | 1 << 16]


def test_bags_pool_at_the_owner_or_at_every_copy():
    plan = _pooled()
    assert plan.owner_pooled.tolist() == [0, 7, 5, 1 << 33]
    assert [plan.own_pooled(node).tolist() for node in range(3)] == [
        [False, False, True, False], [False, False, True, True], [False, True, True, False]]
    plain = plan.with_pools(4 * [PoolPlace.REQUESTER])
    assert not plain.owner_pooled.any() and not plain.own_pooled(2).any()


def test_keys_of_owner_pooled_tables_are_not_looked_up():
    samples = Samples(np.zeros((2, 1), np.float32), np.zeros(2, np.float32),
                      np.array([[0, 2, 1, 1], [0, 1, 0, 3]], np.int32),
                      np.array([1, 1, 2, 3, 1, 3, 3, 3], np.int32),
                      np.array([0, 1, 0, 5, 1, 6, 7, 6]))
    plan = _pooled()
    none = plan.with_pools(4 * [PoolPlace.REQUESTER])
    some = plan.with_pools([PoolPlace.REQUESTER, PoolPlace.OWNER] + 2 * [PoolPlace.REQUESTER])
    assert [foreign_keys(each, samples, [0, 1, 2, 2]) for each in (none, some, plan)] == [4, 1, 0]


@pytest.mark.parametrize("make, message", [
    (lambda: ShardPlan(2, (Placement(DescriptorKind.ROW, 5, 0, 2, pool=PoolPlace.OWNER),)),
     "table 0 must pool at the requester, not at the owner: its rows are hashed over 2 nodes"),
    (lambda: _pooled().with_pools(4 * [PoolPlace.OWNER]), "table 0 must pool at the requester"),
    (lambda: _pooled().with_pools([PoolPlace.OWNER]),
     "pools must have 4 places, one for each table, not 1"),
    (lambda: ShardPlan(2, (Placement(DescriptorKind.COLUMN, 5),)),
     "table 0 is split by columns, which is not supported"),
    (lambda: ShardPlan(2, (Placement(DescriptorKind.TABLE, 5, 2),)),
     "owner of table 0 must be between 0 and 1, not 2"),
    (lambda: ShardPlan(4, (Placement(DescriptorKind.ROW, 5, 2, 3),)),
     "owner of table 0 must be between 0 and 1, not 2"),
    (lambda: ShardPlan(2, (Placement(DescriptorKind.ROW, 5, 0, 3),)),
     "owners of table 0 must be between 1 and 2, not 3"),
    (lambda: ShardPlan(2, (Placement(DescriptorKind.TABLE, 1 << 36),)),
     "rows of table 0 must be between 1 and 68719476735, not 68719476736"),
    (lambda: ShardPlan(0, (Placement(DescriptorKind.TABLE, 1),)),
     "nodes must be between 1 and 256, not 0"),
    (lambda: ShardPlan(1, ()), "tables must be between 1 and 4096, not 0"),
    (lambda: ShardPlan.deal(MODELS["kaggle"], 2, "column"),
     "placement must be one of even, rows, lookups, row, not 'column'"),
    (lambda: ShardPlan.deal(MODELS["kaggle"], 2, "table"),
     "placement must be one of even, rows, lookups, row, not 'table'"),
    (lambda: ShardPlan.deal(MODELS["kaggle"], 2, "lookups"),
     "lookups of each table must be given for placement lookups, not None"),
    (lambda: ShardPlan.deal(MODELS["movielens"], 2, "lookups", [1]),
     "lookups must be 2 numbers, one for each table, not 1"),
    (lambda: ShardPlan.deal(MODELS["movielens"], 2, "lookups", [1, -3]),
     "lookups must be at least 0, not -3"),
    (lambda: ShardPlan.deal(MODELS["movielens"], 2, "0,1,1"),
     "placement must have 2 nodes, one for each table, not 3"),
    (lambda: ShardPlan.deal(MODELS["movielens"], 2, "0,2"),
     "owner of table 1 must be between 0 and 1, not 2"),
    (lambda: ShardPlan.deal(MODELS["movielens"], 2, "0,-1"),
     "placement must be one of even, rows, lookups, row, not '0,-1'"),
])
def test_plans_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
