"""Steps whose repeated bags are sent once: their queries, their answers, and errors of bags."""

import numpy as np
import pytest

from host.batching.repeats import first_bags
from host.dlrm.dlrm import pooled_reference
from host.model import Model
from host.placement.shard import Placement, ShardPlan
from host.samples import Samples
from host.wire.completions import step_open_packet
from host.wire.indices import MOST_INDICES, IndexPart
from host.wire.packets import query_records
from rtl.formats import EMPTY_INDEX, DescriptorKind, RecordKind
from sim.node.completions import Completions
from sim.node.owner_pooling import share_slots
from sim.node.repeats import RepeatCounts, new_bags
from sim.node.step import Step, StepResult, lacking
from sim.node.unique import UniqueShare
from tests.host.batching.test_repeats import few_bags
from tests.sim.node.hosts import NODE, NODES
from tests.sim.node.test_bags import plan_of

MODEL = Model((5, 40, 300), 16, 1, (16,), (1,), "small", ((0, 3), (0, 3), (0, 3)))
SEED, FIRST = 4, 100


def _samples(count: int = 40, seed: int = 1) -> Samples:
    found = few_bags(count, 3, seed, longest=2)
    return Samples(found.dense, found.labels, found.bag_lengths, found.tables, found.rows >> 35)


def _step(repeats: str = "indices", samples: Samples | None = None, **given) -> Step:
    samples = samples or _samples()
    return Step.of(7, FIRST, samples, NODES, (3, 16), repeats=repeats, **given)


def _asked(step: Step, node: int) -> list[int]:
    """Return the samples of a share that the NIC of ``node`` gets."""
    first, last = step.shares[node:node + 2]
    return [at for at in range(first, last) if step.bounds[at + 1] > step.bounds[at]]


def _answer(step: Step, node: int, reference: np.ndarray, refused=(), lost=()) -> None:
    """Answer a share: ``refused``, rejected samples; ``lost``, samples and tables of flagged
    bags."""
    for at in _asked(step, node):
        tables = np.flatnonzero(step.repeats.new[at])
        if at in refused:
            step.refuse(node, at, 4)
            continue
        assert step.place(node, at, 0, reference[at, tables])
        for part, table in enumerate(tables.tolist()):
            if (at, table) in lost:
                step.flag(node, at, part, 6)
                step.status[at] = 6
    assert step.left[node] == 0
    step.expand(node)


@pytest.mark.parametrize("repeats", ["neighbours", "indices"])
def test_new_bags_are_sent_and_answer_all_samples(repeats):
    step, reference = _step(repeats), pooled_reference(_samples(), MODEL, SEED)
    new = first_bags(_samples(), NODES, repeats) == np.arange(40)[:, None]
    assert np.array_equal(step.records, query_records(_samples(), FIRST, new))
    assert len(step.records) == step.bounds[-1] < len(query_records(_samples(), FIRST))
    for node in range(NODES):
        asked = _asked(step, node)
        assert step.left[node] == len(asked)
        assert len(step.queries(node)) == np.diff(step.bounds)[asked].sum()
        assert step.unanswered(node) == len(lacking([step], node)) > len(asked) - 1
        _answer(step, node, reference)
        step.ends[node] = 1.0
        assert step.unanswered(node) == 0 and lacking([step], node) == []
    assert StepResult.judge(step, MODEL, SEED) == StepResult(40, 0, 0)
    assert sum(step.left) == 0
    counts = step.repeats.counts(_samples())
    lengths = _samples().bag_lengths
    assert counts == RepeatCounts((lengths > 0).sum(), (~new).sum(), lengths.sum(),
                                  lengths[~new].sum())
    assert (counts + counts).bags == 2 * counts.bags
    if repeats == "indices":
        # A sample whose bags all repeat is not sent.
        assert any(len(_asked(step, node)) < 13 for node in range(NODES))


def test_an_error_ends_every_sample_that_uses_a_bag():
    """A rejected sample is an error of its new bags; a flag, of a bag. Other nodes are not
    concerned."""
    samples, reference = _samples(seed=3), pooled_reference(_samples(seed=3), MODEL, SEED)
    step = _step(samples=samples)
    first = step.repeats.first
    uses = [int(step.repeats.new[at].any()) and sum(
        at in first[other] for other in range(at + 1, 14)) for at in range(14)]
    refused = int(np.argmax(uses))
    lost = next((at, table) for at in range(14) if at != refused for table in range(3)
                if samples.bag_lengths[at, table] and (first[at + 1:14, table] == at).any())
    _answer(step, 0, reference, {refused}, {lost})
    for node in (1, 2):
        _answer(step, node, reference)
    status = []
    for at in range(40):
        found = [4 if first[at, table] == refused else 6 if (first[at, table], table) == lost
                 else 0 for table in range(3)]
        status.append(4 if at == refused else 6 if at == lost[0] else
                      next((each for each in found if each), 0))
    assert step.status.tolist() == status
    assert status.count(4) > 1 < status.count(6) and not any(status[14:])
    bad = len(status) - status.count(0)
    assert StepResult.judge(step, MODEL, SEED) == StepResult(40 - bad, 0, bad)


def test_a_share_that_is_given_up_ends_the_users_of_its_missing_bags():
    samples, reference = _samples(seed=3), pooled_reference(_samples(seed=3), MODEL, SEED)
    step = _step(samples=samples)
    answered = _asked(step, 0)[:5]
    for at in answered:
        step.place(0, at, 0, reference[at, step.repeats.new[at]])
    step.give_up(0, 8)
    step.expand(0)
    last = step.shares[1]
    expected = [8 if any(source not in answered for source in step.repeats.first[at]) else 0
                for at in range(last)]
    assert step.status[:last].tolist() == expected and 5 <= expected.count(0) < last
    for node in (1, 2):
        _answer(step, node, reference)
    assert StepResult.judge(step, MODEL, SEED) == StepResult(
        40 - expected.count(8), 0, expected.count(8))


@pytest.mark.parametrize(("pooled", "own"), [((), ()), ((1,), ()), ((0, 1, 2), (0, 2))])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_unique_vectors_of_new_bags(pooling, lost, pooled, own):
    """A vector that is lost ends the samples that use its bag."""
    model = Model(MODEL.rows, 16, 1, (16,), (1,), "small", MODEL.bags, pooling=pooling)
    samples = _samples(seed=5)
    reference = pooled_reference(samples, model, SEED)
    plan = plan_of(pooled) if pooled else None
    step = Step.of(7, FIRST, samples, NODES, (3, 16), repeats="indices", unique=True, plan=plan)
    share, (first, last) = UniqueShare(step, NODE), step.shares[NODE:NODE + 2]
    kinds, starts = step.slot_kinds(NODE)
    # All keys of a bag have the bag's vector, which is the mean; a sum has a key with it.
    slots = kinds != RecordKind.EMPTY
    ends = np.flatnonzero(kinds != RecordKind.KEY)
    tables = [(at, table) for at in range(first, last) for table in range(3)
              if table not in own and step.repeats.new[at, table]]
    assert len(tables) == len(ends)
    vectors, indices = [np.zeros(16, np.float32)], np.where(slots, 0, EMPTY_INDEX)
    for (at, table), slot in zip(tables, ends):
        if slots[slot]:
            keys = samples.bag_lengths[at, table] if pooling == "mean" else 1
            indices[slot] = len(vectors)
            vectors.append(reference[at, table] * np.float32(keys))
    given = np.array(vectors, np.float32)
    flagged = next(place for place, (at, table) in enumerate(tables)
                   if (step.repeats.first[at + 1:last, table] == at).any())
    split = int(indices[ends[flagged]]) + 1
    share.add_vectors(0, False, given[:split], 6 if lost else 0)
    share.add_vectors(split, True, np.concatenate((given[split:], np.zeros((1, 16), np.float32))))
    for at in _asked(step, NODE):
        begin, end = starts[at - first], starts[at - first + 1]
        share.add_indices(at - first, IndexPart(FIRST + at, 0, 1, True,
                                                indices[begin:end].astype(np.uint16)))
    assert share.whole
    share.expand(pooling)
    assert step.left[NODE] == 0
    mine = slice(first, last)
    for table in own:
        step.answers[mine, table] = reference[mine, table]
    step.expand(NODE)
    at, table = tables[flagged]
    users = step.repeats.first[mine, table] == at
    assert np.array_equal(step.status[mine], 6 * (users & lost)) and users.sum() > 1
    good = ~users if lost else np.ones(last - first, bool)
    assert np.allclose(step.answers[mine][good], reference[mine][good], rtol=1e-6)
    assert (step.filled[mine][good] == 3).all()


def test_own_bags_are_pooled_once():
    plan = plan_of([0, 1, 2])
    samples = _samples(seed=5)
    step = Step.of(7, FIRST, samples, NODES, (3, 16), repeats="indices", plan=plan)
    mine, new = slice(*step.shares[NODE:NODE + 2]), step.repeats.new
    own = [0, 2]
    full = samples.bag_lengths[mine][:, own] > 0
    bags = step.own_bags(NODE)
    assert len(bags) == (full & new[mine][:, own]).sum() < full.sum()
    reference = pooled_reference(samples, MODEL, SEED)
    sent = [np.flatnonzero(new[at] & ~np.isin(range(3), own))
            for at in range(*step.shares[NODE:NODE + 2])]
    assert step.left[NODE] == sum(len(tables) > 0 for tables in sent)
    sample, table = np.nonzero(full & new[mine][:, own])
    at = np.arange(*step.shares[NODE:NODE + 2])
    step.place_own(NODE, reference[at[sample], np.array(own)[table]])
    for number, tables in zip(at, sent):
        if len(tables):
            assert step.place(NODE, number, 0, reference[number, tables])
    assert step.left[NODE] == 0
    step.expand(NODE)
    assert np.array_equal(step.answers[mine], reference[mine])


def test_completions_count_the_samples_that_are_sent():
    step = _step()
    ring = Completions(1, 4)
    assert ring.reserve()
    asked = len(_asked(step, 1))
    assert asked < step.shares[2] - step.shares[1]
    assert np.array_equal(ring.open(step), step_open_packet(7, asked, 0, node=1))


def test_only_new_bags_need_an_index():
    lengths = np.tile(np.array([[1, MOST_INDICES // 2]], np.int32), (4, 1))
    keys = int(lengths.sum())
    samples = Samples(np.zeros((4, 1), np.float32), np.zeros(4, np.float32), lengths,
                      np.tile(np.repeat([0, 1], lengths[0]), 4).astype(np.int32),
                      np.zeros(keys, np.int64))
    most = 1 + MOST_INDICES // 2
    for nodes, found, slots in (
            (1, "send", 4 * most), (2, "indices", most), (1, "neighbours", most)):
        tables = tuple(Placement(DescriptorKind.TABLE, 5, 0) for _ in range(2))
        assert share_slots(samples, ShardPlan(nodes, tables),
                           new_bags(samples, nodes, found)) == slots
    assert Step.of(0, 0, samples, 1, (2, 16), unique=True, repeats="indices").unique
    with pytest.raises(ValueError, match="use deliver pooled"):
        Step.of(0, 0, samples, 1, (2, 16), unique=True)
