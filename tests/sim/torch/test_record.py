"""Begin of a program's mini-batches, and their counts."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch

from sim.torch.lookups.bags import Bags
from sim.torch.lookups.record import RECENT, Kept, MiniBatch, Record

TABLE = torch.empty(100, 4, device="meta")


def bags(*rows: int, lengths=None, pooling: str = "sum") -> Bags:
    return Bags(TABLE, np.array(rows, np.int64),
                np.array([1] * len(rows) if lengths is None else lengths, np.int64), pooling)


def batch(*columns: Bags, tables=None, **options) -> MiniBatch:
    return MiniBatch(list(columns), list(range(len(columns)) if tables is None else tables),
                     **options)


@pytest.mark.parametrize(("known", "samples", "table", "taken"), [
    ({}, 2, 1, True), ({}, 2, 0, True),  # a table twice, without a read in between
    ({"read": True}, 2, 1, True), ({"read": True}, 2, 0, False),
    ({"trained": True}, 2, 1, False), ({"trained": True}, 2, 0, False),
    ({}, 3, 1, False), ({}, 1, 1, False), ({"read": True}, 3, 1, False),
])
def test_where_a_mini_batch_begins(known, samples, table, taken):
    assert batch(bags(1, 2), **known).takes(samples, table) is taken


def test_a_mini_batch_without_calls_takes_any_call():
    assert MiniBatch(read=True, trained=True).takes(3, 0)
    assert MiniBatch().exchanged == 0


def test_counts_of_a_mini_batch():
    record = Record()
    record.add(batch(bags(1, 2, 2, lengths=[1, 2]), bags(2, 3), trained=True, exchanged=32))
    record.add(batch(bags(5, 5), exchanged=15))
    record.add(batch(bags(5), exchanged=8))
    record.add(batch(bags(), exchanged=99))
    assert record.steps[:2] == [
        {"workload": "training", "samples": 2, "bags": 4, "lookups": 5, "unique": 4,
         "bytes": 5 * 16, "local_cache_hits": None, "local_cache_accesses": None},
        {"workload": "inference", "samples": 2, "bags": 2, "lookups": 2, "unique": 1,
         "bytes": 2 * 16, "local_cache_hits": None, "local_cache_accesses": None}]
    assert record.steps[3]["unique"] == record.steps[3]["lookups"] == 0
    # Counts as exchanged from half the bytes of its vectors: 64 and 16 do, 32 and 0 do not.
    assert record.exchanges == 2
    assert [each.step for each in record.recent[True]] == [0]
    assert [each.step for each in record.recent[False]] == [1, 2]
    assert (record.recent[True][0].tables, len(record.recent[True][0].columns)) == ((0, 1), 2)


def test_what_local_caches_counted():
    record = Record()
    record.add(batch(bags(1)))
    record.cached({(0, "hits"): 3, (0, "accesses"): 5, (1, "hits"): 7})
    assert record.steps[0]["local_cache_hits"] == 3
    assert record.steps[0]["local_cache_accesses"] == 5 and len(record.steps) == 1


def test_the_last_mini_batches_of_each_kind_are_kept():
    record = Record()
    for number in range(RECENT + 2):
        record.add(batch(bags(number)))
    assert [each.step for each in record.recent[False]] == list(range(2, RECENT + 2))
    assert not record.recent[True]


def test_a_record_without_rows():
    record = Record()
    weight = torch.ones(9, 4)
    record.add(batch(Bags(weight, np.array([1, 2]), np.array([1, 1]), "mean"), tables=[3],
                     exchanged=32))
    found = record.without_rows()
    assert found.steps == record.steps and found.exchanges == record.exchanges == 1
    [kept] = found.recent[False]
    assert (kept.tables, kept.step, len(kept.columns)) == ((3,), 0, 1)
    assert kept.columns[0].weight.is_meta and kept.columns[0].weight.shape == (9, 4)
    assert not record.recent[False][0].columns[0].weight.is_meta


def test_mini_batches_of_the_shape_of_most():
    record = Record()
    for each in (bags(1), bags(1, 2), bags(3, 4), bags(5, 6, pooling="mean")):
        record.add(batch(each))
    record.add(batch(bags(1, 2), tables=[1]))
    assert [each.step for each in record.alike(False)] == [1, 2]
    assert Kept((bags(1, 2),), (4,)).shape == (2, (4,), ("sum",)) and Kept((), ()).step == 0
