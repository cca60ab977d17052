"""Training paths of several nodes, back to back: rows bit for bit those of the numpy reference."""

import numpy as np
import pytest

from host.dlrm.optimizer import Optimizer
from host.model import Model
from host.samples import Samples
from rtl.config import NicConfig
from rtl.formats import Status
from tests.rtl.training.cluster import Cluster

SMALL = {"nodes": 2, "tables": 4, "local_cache_rows": 64, "local_cache_ways": 4,
         "misses_in_flight": 16, "dedupe_in_flight": 16, "host_payload_beats": 22,
         "gradient_beats": 64, "partial_beats": 64, "training": True, "gradient_ways": 2,
         "update_rows": 8}


def model(dimension: int, rows=(40, 60, 9), pooling: str = "sum") -> Model:
    return Model(name="small", rows=rows, dimension=dimension, dense=1,
                 bottom=(dimension,), top=(1,), pooling=pooling)


def batches(model: Model, sizes: list[int], seed: int, most: int = 3):
    """Return mini-batches of these sizes, bags of 0 to ``most`` keys, and gradients of bags."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        lengths = rng.integers(0, most + 1, (size, len(model.rows))).astype(np.int32)
        tables = np.repeat(np.tile(np.arange(len(model.rows), dtype=np.int32), size),
                           lengths.reshape(-1))
        # A few rows are requested repeatedly.
        rows = np.minimum(rng.zipf(1.5, len(tables)) - 1,
                          np.array(model.rows)[tables] - 1).astype(np.int64)
        samples = Samples(np.zeros((size, 1), np.float32), np.zeros(size, np.float32), lengths,
                          tables, rows)
        scale = np.float32(2.0) ** rng.integers(-20, 20, (*lengths.shape, 1)).astype(np.float32)
        gradients = rng.standard_normal((*lengths.shape, model.dimension), np.float32) * scale
        yield samples, gradients


SGD, ADAGRAD = (Optimizer(name, 0.05, 1e-6) for name in ("sgd", "rowwise-adagrad"))
MODES = [(SGD, "exact"), (ADAGRAD, "rounded"), (ADAGRAD, "exact"), (SGD, "rounded")]


def train(shape: Model, sizes, modes, *, nodes=2, keys=(64, 64), seed=1, most=3, first=0,
          **sizes_of_nic):
    """Train ``sizes`` samples per step; return the cluster, whose rows were compared each step."""
    config = NicConfig(**SMALL | {
        "nodes": nodes, "max_dimension": shape.dimension, "local_gradient_keys": keys[0],
        "global_gradient_keys": keys[1], "dot_units": 0, **sizes_of_nic})
    cluster = Cluster(config, shape, nodes=nodes, seed=seed, first=first)
    cluster.run(list(batches(shape, sizes, seed, most)), modes)
    for node, counters in zip(cluster.around, cluster.counters, strict=True):
        assert not node.refused
        bad = {f"{part}.{name}": count for part, counts in counters.items()
               for name, count in counts.items()
               if (name.startswith("bad") or name in ("dropped", "over_credit")) and count}
        assert not bad, (node.number, bad)
        assert node.host.done == [first + n & 0xFFFF for n in range(len(sizes))]
        # Each row beat and each state was written once.
        counted = counters["row_updater"]
        assert counters["row_packager"]["partials"] == (
            counted["rows"] * -(-shape.dimension // 16))
    return cluster


@pytest.mark.slow
def test_a_node_by_itself():
    """More keys than either reduction holds, so that both spill and take passes. And the number of
    the step comes to its end and begins again."""
    host = train(model(16), [2, 3], [(SGD, "rounded"), (ADAGRAD, "exact")], nodes=1,
                 keys=(4, 8), first=0xFFFF).hosts[0]
    assert min(host.spilled) > 0


@pytest.mark.slow
def test_what_the_host_spoils_ends_the_step_with_an_error():
    """Of a pass of either reduction one beat comes back without a table; the next step is good."""
    config = NicConfig(**SMALL | {"nodes": 1, "max_dimension": 16, "dot_units": 0,
                                  "local_gradient_keys": 4, "global_gradient_keys": 8})
    shape = model(16)
    cluster = Cluster(config, shape, nodes=1)
    host, node = cluster.hosts[0], cluster.around[0]
    host.spoil, cluster.compare = [1, 1], False
    cluster.run(list(batches(shape, [3, 1], 1)), [(SGD, "rounded")] * 2)
    assert host.done == [0, 1] and host.spoil == [0, 0]
    assert node.refused == [(Status.RETURNED, 0)] * 2
    assert cluster.counters[0]["returned_receiver"]["bad_table"] == 2
    sources = [cluster.counters[0][f"{level}_source"] for level in ("local", "global")]
    assert [source["returned"] for source in sources] == [count - 1 for count in host.spilled]


@pytest.mark.slow
def test_without_local_reduction_each_gradient_goes_by_itself():
    """As it is, whatever sums would be rounded to; nothing is kept for a second local pass."""
    shape = model(16, rows=(5, 3, 9))
    cluster = train(shape, [3], [(SGD, "single")], keys=(4, 8))
    local = [entry for host in cluster.hosts for entry in host.passes if entry[1] == 0]
    assert local == [(0, 0, 0)] * 2
    sent = sum(counters["gradient_sender"][way] for counters in cluster.counters
               for way in ("own", "remote"))
    (samples, _), = batches(shape, [3], 1)
    assert sent == len(samples.rows) > len(np.unique(samples.keys))
    assert not sum(counters["local_reducer"]["keys"] for counters in cluster.counters)


@pytest.mark.slow
@pytest.mark.parametrize("dimension, pooling, keys", [
    (16, "sum", (64, 64)), (32, "mean", (4, 8)), (8, "mean", (8, 16)), (4, "sum", (4, 64))])
def test_two_nodes(dimension, pooling, keys):
    cluster = train(model(dimension, pooling=pooling), [6, 7, 1, 8], MODES, keys=keys)
    spilled = [sum(host.spilled[level] for host in cluster.hosts) for level in range(2)]
    # Even the larger tables have sets that are too small.
    assert all(count or size == 64 for count, size in zip(spilled, keys, strict=True))
    assert cluster.beats_between and all(node.writes for node in cluster.around)


@pytest.mark.slow
def test_three_nodes():
    """One of which has no samples in a step."""
    train(model(16), [2, 7], MODES[2:], nodes=3, keys=(8, 16))


@pytest.mark.slow
def test_many_partials_need_credit():
    cluster = train(model(32, rows=(90, 90, 90)), [40, 40], MODES[1:3], keys=(64, 64), most=4)
    assert sum(counters["partial_packager"]["stall_credit"] for counters in cluster.counters)
    assert sum(counters["credit_return"]["credits"] for counters in cluster.counters)
