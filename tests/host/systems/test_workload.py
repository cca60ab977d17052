"""Counts of mini-batches against plain loops."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.data.generator import generate
from host.devices.embedding_work import gather
from host.model import MODELS, Model
from host.placement.shard import ShardPlan
from host.samples import Samples, rechunk
from host.systems import (
    Devices,
    StepOptions,
    Tally,
    Tuning,
    Workload,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    every,
    tuning_variants,
    workload_of,
)
from host.systems.delivery import delivery_of
from host.systems.tables import (
    by_table,
    bytes_of,
    copied_values,
    in_shares,
    index_bytes,
    input_bytes,
    lookups,
    vector_bytes,
)
from rtl.formats import DescriptorKind
from tests.host.systems.simple import MODEL, devices, workload


def test_two_samples_of_two_tables():
    found = workload(rows=((1, 2), (1, 3)))
    assert found.samples.tolist() == [1, 1] and found.tables.tolist() == [1, 1]
    for counts in (found.lookups, found.bags, found.requested):
        assert counts.tolist() == [[1, 1], [1, 1]]
    assert found.unique.tolist() == [1, 2] and found.distinct == 3
    assert found.accesses == 4 and found.similarity == 0.25


def test_keys_of_weighted_tables_have_weights():
    model = replace(MODEL, bags=((1, 9), (1, 9)), weighted_tables=(1,))
    # The second node repeats its bag of table 1: keys 3 and 4.
    samples = Samples(np.zeros((4, 2), np.float32), np.zeros(4, np.float32),
                      np.array([[1, 2], [3, 0], [1, 2], [2, 2]], np.int32),
                      np.array([0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1], np.int32),
                      np.array([1, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 3, 4]),
                      np.ones(13, np.float32))
    found = workload_of(samples, model, ShardPlan.deal(model, 2, "0,1"))
    assert found.weights.tolist() == [[0, 2], [0, 4]]
    assert found.once.weights.tolist() == [[0, 2], [0, 2]]
    keys = 8 * (found.lookups + found.bags)
    assert (index_bytes(found) == keys + 4 * found.weights).all()
    plain = replace(found, weights=np.zeros_like(found.weights))
    # The owner of table 1: 2 samples of 2 dense features, 6 keys, 3 bags, 6 weights.
    assert input_bytes(found) == 4 * 4 + 8 * 9 + 4 * 6
    # The second requester: 7 keys, 4 bags, 4 weights.
    assert input_bytes(found, arrived=False) == 4 * 4 + 8 * 11 + 4 * 4
    pools, light = (in_shares(of, gather, "lookups", "whole", weights="weights").streamed_bytes
                    for of in (found, plain))
    assert pools - light == 4 * 4
    for requested, more in ((False, 6), (True, 0)):
        work, less = (by_table(of, 2, requested).streamed_bytes for of in (found, plain))
        assert work - less == 2 * 4 * more
    both = workload_of(samples, model, ShardPlan.deal(model, 2, "1,1"))
    light = replace(both, weights=np.zeros_like(both.weights))
    for requested, more in ((False, 6), (True, 0)):
        (work,), (less,) = (lookups(of, devices().gpu, True, requested) for of in (both, light))
        assert work.streamed_bytes - less.streamed_bytes == 4 * more
        assert work.flops - less.flops == MODEL.dimension * more
    delivery = delivery_of(Tally(samples, 2), (False, False), weighted=(1,))
    assert delivery.weights.tolist() == [2, 4] and delivery.copied_weights.tolist() == [0, 0]
    copied = delivery_of(Tally(samples, 2), (False, True), weighted=(1,))
    assert copied.weights.tolist() == [0, 0] and copied.copied_weights.tolist() == [2, 4]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.sampled_from(["even", "rows", "row"]),
       st.lists(st.tuples(*[st.lists(st.integers(0, 2), max_size=3)] * 3), max_size=9),
       st.booleans())
def test_counts_are_those_of_a_plain_loop(nodes, placement, bags, copies):
    model = Model((6, 6, 6), 4, 1, (4,), (1,))
    plan = ShardPlan.deal(model, nodes, placement)
    if copies and nodes > 1:
        plan = plan.with_copies(6)
    lengths = np.array([[len(bag) for bag in sample] for sample in bags], np.int32).reshape(-1, 3)
    keys = [(table, row) for sample in bags for table, bag in enumerate(sample) for row in bag]
    tables, rows = (np.array([key[i] for key in keys], kind)
                    for i, kind in ((0, np.int32), (1, np.int64)))
    samples = Samples(np.zeros((len(bags), 1), np.float32), np.zeros(len(bags), np.float32),
                      lengths, tables, rows)
    found = workload_of(samples, model, plan)
    lookups = np.zeros((nodes, nodes), int)
    pooled, requested = ([[set() for _ in range(nodes)] for _ in range(nodes)] for _ in range(2))
    sizes = [len(bags) // nodes + (node < len(bags) % nodes) for node in range(nodes)]
    requesters = [node for node, size in enumerate(sizes) for _ in range(size)]
    for number, (sample, requester) in enumerate(zip(bags, requesters)):
        for table, bag in enumerate(sample):
            for row in bag:
                owner = int(plan.owner_of(np.array([table]), np.array([row]), requester)[0])
                lookups[requester, owner] += 1
                pooled[requester][owner].add((number, table))
                requested[requester][owner].add((table, row))
    assert found.samples.tolist() == sizes and found.lookups.tolist() == lookups.tolist()
    assert found.bags.tolist() == [[len(cell) for cell in line] for line in pooled]
    assert found.requested.tolist() == [[len(cell) for cell in line] for line in requested]
    assert found.unique.tolist() == [len(set().union(*(line[owner] for line in requested)))
                                     for owner in range(nodes)]
    assert found.distinct == len(set(keys))
    filled = [[requester, bag] for sample, requester in zip(bags, requesters) for bag in sample
              if bag]
    assert found.whole.tolist() == [sum(of == node for of, _ in filled) for node in range(nodes)]
    assert found.varies == any(lengths[0].tolist() != line.tolist() for line in lengths)
    # Each run of equal bags of a table in a share counts once.
    kept = [[bag for number, bag in enumerate(column) if not (
        number and requesters[number] == requesters[number - 1] and bag == column[number - 1])]
        for column in zip(*bags)]
    once = found.once
    assert once.lookups.sum() == sum(len(bag) for column in kept for bag in column)
    assert once.whole.sum() == sum(bool(bag) for column in kept for bag in column)
    assert (once.bags <= found.bags).all() and (once.requested == found.requested).all()


def mixed(seed: int, nodes: int = 3, copied: int = 0, dimensions=(16, 64, 16, 32)) -> Workload:
    """Return the workload of four tables of three dimensions, of which each node has some."""
    rng = np.random.default_rng(seed)
    model = Model((9, 40, 7, 30), 16, 1, (16,), (1,), bags=((0, 3), (1, 5), (1, 1), (2, 2)),
                  interaction="cat", dimensions=dimensions)
    (samples,) = rechunk(generate(model, 30, int(rng.integers(9))), 30)
    return workload_of(samples, model, ShardPlan.deal(model, nodes).with_copies(copied))


@pytest.mark.parametrize("copied", [0, 9])
def test_counts_of_each_dimension_are_those_of_its_tables_alone(copied):
    found = mixed(1, copied=copied)
    assert [dimension for dimension, _ in found.by_dimension] == [16, 32, 64]
    for name in ("lookups", "bags", "requested", "unique", "tables"):
        assert (sum(getattr(part, name) for _, part in found.parts) == getattr(found, name)).all()
    assert sum(part.distinct for _, part in found.parts) == found.distinct
    assert found.parts[2][1].lookups.sum() and (bytes_of(found, "lookups") == sum(
        4 * dimension * part.lookups for dimension, part in found.parts)).all()
    assert copied_values(found) == (16 * (9 + 7) if copied else 0)
    same = mixed(1, copied=copied, dimensions=(64,) * 4)
    assert not same.by_dimension and same.lookups.tolist() == found.lookups.tolist()
    assert bytes_of(same, "bags").tolist() == (256 * same.bags).tolist()
    assert vector_bytes(found) == vector_bytes(same) == 256
    odd = mixed(1, copied=copied, dimensions=(10,) * 4)
    assert vector_bytes(odd) == 64 and bytes_of(odd, "bags").tolist() == (40 * odd.bags).tolist()


@pytest.mark.parametrize("training", [False, True])
def test_baselines_move_no_padding(training):
    """Each baseline is cheaper than with padding, and dearer than with the least dimension."""
    step, d = StepOptions(training), Devices.load(2, "tuned", "gpu_rtx8000")
    slim, own, padded = (mixed(2, nodes=2, dimensions=of) for of in (
        (16,) * 4, (16, 64, 16, 32), (64,) * 4))
    found = every(Tuning(), tuning_variants(training, copied_rows=(0,)), training)
    for build in (cpu_mpi, bl_paper, *(partial(bl_tuned, tuning=each)
                                       for each in found[::len(found) // 20])):
        costs = []
        for w in (slim, own, padded):
            stages = build(w, d, step).stages
            costs.append([sum(share * stage.us for stage in stages
                              for resource, share in stage.uses if resource == name)
                          for name in ("link", "gpu_memory", "cpu_memory")])
        for least, mine, most in zip(*costs):
            assert least == most == 0 or least < mine < most


@pytest.mark.parametrize("placement", ["even", "rows", "lookups"])
def test_small_tables_are_copied_and_the_others_dealt_anew(placement):
    model = MODELS["kaggle"]
    lookups = np.arange(26) % 5
    plan = ShardPlan.deal(model, 4, placement, lookups).with_copies(10_000)
    kinds = [table.kind == DescriptorKind.REPLICATED for table in plan.tables]
    assert kinds == [rows <= 10_000 for rows in model.rows]
    # As if only the large tables existed.
    large = Model(tuple(rows for rows in model.rows if rows > 10_000), 16, 1, (16,), (1,))
    alone = ShardPlan.deal(large, 4, placement, lookups[~np.array(kinds)])
    assert [table.owner for table, copied in zip(plan.tables, kinds) if not copied] == [
        table.owner for table in alone.tables]
    if placement == "even":
        counts = np.bincount([table.owner for table in alone.tables])
        assert counts.tolist() == [2, 2, 3, 3]


def test_hashed_tables_stay_where_they_are():
    model = MODELS["kaggle"]
    plan = ShardPlan.deal(model, 4, "row")
    copied = plan.with_copies(10_000)
    assert all(mine in (its, replace(its, kind=DescriptorKind.REPLICATED, owner=0, owners=1))
               for mine, its in zip(copied.tables, plan.tables))
    assert copied.rule == plan.rule


@pytest.mark.parametrize("nodes, rows", [(1, 10), (2, 9)])
def test_nothing_is_copied_where_there_is_nobody_or_nothing_small(nodes, rows):
    plan = ShardPlan.deal(MODEL, nodes)
    assert plan.with_copies(rows) == plan


def test_all_plans_of_a_mini_batch_share_its_counts(monkeypatch):
    model = Model((9, 40, 7, 30), 16, 1, (16,), (1,), bags=((0, 3), (1, 5), (1, 1), (2, 2)))
    (samples,) = rechunk(generate(model, 30, 1), 30)
    tally, counted = Tally(samples, 3), []
    monkeypatch.setattr(Tally, "_counted", lambda own, owners, of=Tally._counted: counted.append(
        owners) or of(own, owners))
    plan = ShardPlan.deal(model, 3)
    hashed = ShardPlan.deal(model, 3, "row")
    plans = [plan, plan.with_copies(9), hashed, hashed.with_copies(9), replace(
        plan, tables=(*plan.tables[:2], *hashed.tables[2:]))]
    for each in plans:
        shared, alone = workload_of(samples, model, each, tally), workload_of(samples, model, each)
        for name in ("lookups", "bags", "requested", "unique", "whole", "distinct"):
            assert np.array_equal(getattr(shared, name), getattr(alone, name))
        requester = samples.requesters(3)
        owner = each.owner_of(samples.tables, samples.rows, requester)
        assert shared.requested.tolist() == [
            [len(np.unique(samples.keys[(requester == node) & (owner == other)]))
             for other in range(3)] for node in range(3)]
    assert counted.count(1) == 6 and counted.count(3) == 4  # own counts of each plan, and shared
