"""Training steps on fake NICs: each row is written as in the reference, exactly once."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.optimizer import Optimizer
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import rechunk
from host.timing.all_reduce import RingAllReduce
from host.timing.dense_time import DenseTime
from host.timing.network import Network
from sim.node.step import Step
from sim.training.comparison import Comparison
from sim.training.tables import Clock, ClusterTables
from tests.sim.training.fake_nics import GPU, NETWORK, FakeCluster

MODEL = Model((50, 3, 4000, 70), 16, 3, (8, 16), (4, 1), "small",
              ((1, 3), (1, 1), (0, 5), (2, 2)))
ADAGRAD = Optimizer("rowwise-adagrad", 0.05)


def tables_of(cluster: FakeCluster, compare: bool = True) -> ClusterTables:
    nodes = len(cluster.nodes)
    clock = Clock(DenseTime(GPU, cluster.model),
                  RingAllReduce(Network(NETWORK, nodes), nodes, 1000), 50.0, 10.0)
    reference = EmbeddingTables(cluster.model, cluster.seed, cluster.optimizer, nodes,
                                cluster.partials)
    return ClusterTables(cluster, clock, Comparison(
        reference, [node.store for node in cluster.nodes], cluster.plan) if compare else None)


def batches(model, count=3, size=21):
    return list(rechunk(generate(model, count * size + 1, 6), size))


def train(tables, parts, seed=3):
    rng = np.random.default_rng(seed)
    for samples in parts:
        pooled = tables.pooled(samples)
        tables.update(samples, rng.standard_normal(pooled.shape, np.float32))


@pytest.mark.parametrize("nodes", [1, 2, 5])
@pytest.mark.parametrize("optimizer", [Optimizer(), ADAGRAD], ids=["sgd", "adagrad"])
@pytest.mark.parametrize("partials", ["exact", "rounded"])
@pytest.mark.parametrize("entries", [1 << 20, 7], ids=["", "spilled"])
def test_rows_are_those_of_the_reference(nodes, optimizer, partials, entries):
    model = replace(MODEL, pooling="mean") if nodes == 2 else MODEL
    cluster = FakeCluster(model, 3, optimizer, nodes, partials, entries,
                          plan=ShardPlan.deal(model, nodes, "row" if nodes == 5 else "even"))
    tables = tables_of(cluster)
    parts = batches(model)  # the last has a single sample
    train(tables, parts)
    comparison = tables.comparison
    assert comparison.first is None and comparison.good
    assert comparison.rows == sum(len(np.unique(part.keys)) for part in parts)
    assert tables.rows.digest() == comparison.reference.rows.digest()
    assert tables.verdicts == {"equal": sum(map(len, parts)), "different": 0, "refused": 0}
    spilled = np.sum([node.training.spilled for node in cluster.nodes], axis=0)
    assert (spilled[1] > 0) == (entries == 7)
    assert (spilled[0] > 0) == (entries == 7 and partials == "rounded")
    for node in cluster.nodes:
        assert not node.training.refused and not node.training.waiting and not node.training.busy


@pytest.mark.parametrize("overtake", [False, True])
def test_queries_may_follow_the_gradients_of_the_step_before(overtake):
    cluster = FakeCluster(MODEL, 3, ADAGRAD, 2)
    tables, parts, rng = tables_of(cluster), batches(MODEL), np.random.default_rng(3)
    ended = [0.0]
    for samples, following in zip(parts, [*parts[1:], None], strict=True):
        pooled = tables.pooled(samples)
        if len(ended) > 1:
            assert (tables.step.started < ended[-1]) == overtake
        if overtake:
            tables.next_samples = following
        before = tables.clock.lookup
        tables.update(samples, rng.standard_normal(pooled.shape, np.float32))
        ended.append(max(node.training.finished for node in cluster.nodes))
        # Lookups of the first step have no earlier step to overtake.
        assert tables.clock.lookup >= before and tables.clock.lookup > 0
    assert tables.comparison.good and tables.verdicts["equal"] == sum(map(len, parts))
    assert tables.rows.digest() == tables.comparison.reference.rows.digest()


@pytest.mark.parametrize("dimension", [4, 8, 48])
def test_vectors_of_other_lengths(dimension):
    model = Model(MODEL.rows, dimension, 3, (8, dimension), (4, 1), bags=MODEL.bags)
    cluster = FakeCluster(model, 3, ADAGRAD, 2, "rounded", 9)
    tables = tables_of(cluster)
    train(tables, batches(model))
    assert tables.comparison.good and tables.rows.digest() == (
        tables.comparison.reference.rows.digest())


def test_no_more_is_sent_than_the_window_holds():
    """With a window of one packet, each further packet waits for an acknowledgement."""
    cluster = FakeCluster(MODEL, 3, Optimizer(), 2, "rounded", 5, window=16, payload_beats=64)
    most = 0
    for node in cluster.nodes:
        def watched(packet, now, node=node, send=node.training._send):
            nonlocal most
            training = node.training
            most = max(most, training._sent_beats - training._consumed_beats)
            assert len(packet) - 1 <= 8
            send(packet, now)
        node.training._send = watched
    tables = tables_of(cluster)
    train(tables, batches(MODEL))
    assert tables.comparison.good and 8 < most <= 16


def test_differences_are_found_and_named():
    cluster = FakeCluster(MODEL, 3, ADAGRAD, 2)
    tables = tables_of(cluster)
    parts = batches(MODEL)
    train(tables, parts[:1])
    key = int(parts[1].keys[3])
    table, row = key >> 36, key & (1 << 36) - 1
    owner = int(cluster.plan.owner_of(np.array([table]), np.array([row]))[0])
    store, node = cluster.nodes[owner].store, cluster.nodes[owner]
    original = node.training.memory._put_states

    def once_more(keys, states):
        original(keys, states)
        if key in keys:
            vectors, states = store.read(np.array([key]))
            store.write(np.array([key]), vectors, np.nextafter(states, np.float32(np.inf)))

    node.training.memory._put_states = once_more
    train(tables, parts[1:2], 4)
    assert not tables.comparison.good and tables.comparison.different == 1
    assert tables.comparison.first == {"step": 1, "table": table, "row": row, "node": owner,
                                       "what": "has another state"}


def test_steps_take_the_time_of_all_their_parts():
    """A step takes lookups, then GPU, then rows; the all-reduce counts only where it is longer."""
    cluster = FakeCluster(MODEL, 3, Optimizer(), 2)
    tables = tables_of(cluster, compare=False)
    clock, dense = tables.clock, DenseTime(GPU, MODEL)
    samples = batches(MODEL)[0]
    pooled = tables.pooled(samples)
    step = tables.step
    assert step.shares == [0, 11, 21] and step.ends == {0: 60.0, 1: 110.0}
    tables.update(samples, np.ones(pooled.shape, np.float32))
    bags = [dense.top(dense.bottom(10.0, n), n) for n in (11, 10)]
    done = max(node.training.finished for node in cluster.nodes)
    assert clock.lookup == 100.0 and clock.compute == max(bags) - 110.0
    assert clock.update == done - max(bags) > 2000  # a scatter, and the ways there and back
    weights = dense.backward(bags[0], 11)
    without = max(done + 50.0, dense.weights(weights))
    assert clock.ready == max(done + 50.0, dense.weights(weights + clock.all_reduce.cycles))
    assert clock.exposed == clock.ready - without
    # Then the next step begins.
    tables.pooled(batches(MODEL)[1])
    assert tables.step.started == clock.ready


def test_rows_that_nothing_was_for_are_counted():
    cluster = FakeCluster(MODEL, 3, Optimizer(), 1)
    comparison = tables_of(cluster).comparison
    samples = batches(MODEL)[0]
    gradients = np.zeros((21, 4, 16), np.float32)
    keys = np.unique(samples.keys)
    other = int(np.setdiff1d(np.arange(50), keys)[0])
    # Zero gradients change no bit; a missing write is the only difference.
    comparison.step(0, samples, gradients, [np.union1d(keys[1:], [other])])
    assert (comparison.different, comparison.extra) == (1, 1) and not comparison.good
    assert comparison.first is not None and comparison.first["what"] == "was not written"
    comparison = tables_of(cluster).comparison
    comparison.step(0, samples, gradients, [np.union1d(keys, [other])])
    assert (comparison.different, comparison.extra) == (0, 1) and not comparison.good
    assert comparison.first == {"step": 0, "table": 0, "row": other, "node": 0,
                                "what": "has no gradient"}


@pytest.mark.parametrize("ends", [{0: 5000.0, 1: 90_000.0}, {0: 90_000.0, 1: 5000.0}])
def test_a_node_that_is_far_ahead_waits_for_the_front_end(ends):
    dense = DenseTime(GPU, MODEL)
    clock = Clock(dense, RingAllReduce(Network(NETWORK, 2), 2, 1000), 50.0, 10.0)
    samples = batches(MODEL)[0]
    step = Step.of(0, 0, samples, 2, (4, 16))
    step.ends.update(ends)
    late = max(ends, key=ends.get)
    bags = clock.gradients(step)
    assert bags[1 - late] == 90_050.0
    assert bags[late] == dense.top(90_000.0, step.shares[late + 1] - step.shares[late]) > 91_000
