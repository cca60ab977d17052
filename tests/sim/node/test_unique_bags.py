"""Shares delivered as unique vectors, with owner-pooled bags: their slots and pooled answers."""

from dataclasses import replace

import numpy as np
import pytest

from host.dlrm.dlrm import pool, pooled_reference
from host.dlrm.rows import row_values
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.indices import IndexPart
from host.wire.packets import share_end
from rtl.formats import EMPTY_INDEX, PoolPlace, RecordKind
from sim.node.owner_pooling import share_slots
from sim.node.step import Step
from sim.node.unique import UniqueShare
from tests.sim.node.hosts import NODE, NODES, SEED, model_of
from tests.sim.node.test_bags import plan_of, steps_of


def _answer(step: Step, pooled: set[int], own: set[int], model) -> tuple[list[int], np.ndarray]:
    """Return the indices and vectors of a NIC that finds no repeats."""
    share = step.samples.slice(*step.shares[NODE:NODE + 2])
    indices, vectors, at = [], [], 0
    for lengths in share.bag_lengths:
        for table, length in enumerate(lengths):
            rows = row_values(model, SEED, np.full(length, table), share.rows[at:at + length])
            weights = share.weights if table in model.weighted_tables else None
            weights = None if weights is None else weights[at:at + length]
            at += length
            if table in own:
                continue
            slots = pool(rows, [length], "sum", weights) if table in pooled and length else rows
            indices += range(len(vectors), len(vectors) + len(slots)) if length else [EMPTY_INDEX]
            vectors += [*slots]
    return indices, np.array(vectors, np.float32)


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize(("pooled", "own"), [({1}, set()), ({0, 1}, {0}), ({0, 1, 2}, {0, 2})])
@pytest.mark.parametrize("weighted", [(), (1, 2), (0, 1)])
def test_bags_are_a_slot_each(pooling, pooled, own, weighted):
    """The host weights the bags of requesters; owners have weighted theirs."""
    model = replace(model_of(16, pooling), weighted_tables=weighted)
    plan = plan_of(sorted(pooled), weighted=weighted)
    first = steps_of(model, plan)[2]
    step = Step.of(0, 0, first.samples, NODES, (3, model.width), unique=True, plan=plan)
    items = step.items(NODE)
    words = len(step.queries(NODE))
    assert items is not None and items[-2:].tolist() == [*range(words - len(share_end()), words)]
    share = UniqueShare(step, NODE)
    indices, vectors = _answer(step, pooled, own, model)
    kinds, starts = step.slot_kinds(NODE)
    assert len(kinds) == len(indices) == starts[-1]
    size = step.shares[NODE + 1] - step.shares[NODE]
    share.add_indices(0, IndexPart(step.shares[NODE], 0, size, True,
                                   np.array(indices, np.uint16)))
    end = np.zeros((1, model.width), np.float32)
    share.add_vectors(0, True, np.concatenate((vectors, end)))
    assert share.whole
    share.expand(pooling)
    assert step.left[NODE] == 0
    tables = sorted({0, 1, 2} - own)
    expected = pooled_reference(step.samples, model, SEED)
    got = slice(*step.shares[NODE:NODE + 2])
    assert np.array_equal(step.answers[got][:, tables].view(np.uint32),
                          expected[got][:, tables].view(np.uint32))
    assert (step.filled[got] == len(tables)).all()


def test_owner_pooled_bags_are_one_index_each_and_own_bags_none():
    """Node 1 has the largest share; its own bags of table 1 are not sent."""
    lengths = np.array([[30_000, 40_000], [1, 1], [60_000, 9], [5_532, 9]], np.int32)
    samples = Samples(np.zeros((4, 1), np.float32), np.zeros(4, np.float32), lengths,
                      np.repeat(np.tile([0, 1], 4), lengths.reshape(-1)).astype(np.int32),
                      np.zeros(int(lengths.sum()), np.int64))
    plan = ShardPlan.deal(Model((9, 9), 16, 1, (16,), (1,)), 2, "0,1")
    places = PoolPlace.REQUESTER, PoolPlace.OWNER
    mixed = plan.with_pools(places)
    # Node 0 sends 30,001 keys of table 0 and 2 bags of table 1.
    assert share_slots(samples, mixed) == 60_000 + 5_532
    assert share_slots(samples.slice(0, 2), mixed) == 30_001
    assert share_slots(samples, plan) == 70_002
    assert share_slots(samples, plan.with_pools(places[::-1])) == 40_001
    Step.of(0, 0, samples, 2, (2, 16), unique=True, plan=mixed)
    with pytest.raises(ValueError, match="slots of a share must be at most 65534 with deliver "
                                         "unique, not 70002"):
        Step.of(0, 0, samples, 2, (2, 16), unique=True, plan=plan)


@pytest.mark.parametrize("pooled", [(), (2,)])
def test_weights_of_the_slots_that_are_sent(pooled):
    """Bags that repeat are not sent, nor are their weights; requesters alone pool without a plan of
    owner pooling."""
    model = replace(model_of(16), weighted_tables=(1, 2))
    plan = plan_of(pooled, weighted=(1, 2))
    samples = steps_of(model, plan)[2].samples
    samples = samples.take(np.repeat(np.arange(len(samples)), 2))
    step = Step.of(0, 0, samples, NODES, (3, model.width), unique=True, plan=plan,
                   repeats="neighbours")
    weights, weighted = step.slot_weights(NODE)
    assert step.repeats is not None and samples.weights is not None and weights is not None
    own = step.pools is not None and step.pools.own[NODE]
    expected, at = [], int(samples.key_offsets[step.shares[NODE]])
    for sample in range(*step.shares[NODE:NODE + 2]):
        for table, length in enumerate(samples.bag_lengths[sample].tolist()):
            here = samples.weights[at:at + length].tolist()
            at += length
            if step.repeats.new[sample, table] and not np.broadcast_to(own, 3)[table]:
                expected += [1.0] * bool(length) if table in pooled else here
    assert weights.tolist() == expected and len(set(expected)) > 10
    kinds, _ = step.slot_kinds(NODE)
    assert len(weights) == (kinds != RecordKind.EMPTY).sum()
    assert weighted.tolist() == ([False, True] if pooled else [False, True, True])
