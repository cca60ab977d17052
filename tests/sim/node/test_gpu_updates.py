"""Updates by GPUs: rows of tables that pool at their owner, the same for every number of nodes."""

import random
from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import share_sizes
from host.timing.gpu import GpuProfile
from host.wire.bag_gradients import BagGradients, gradient_bag_packets, split_lists
from host.wire.bags import BagList
from host.wire.packets import parse_header, payload_records
from host.wire.steps import parse_steps
from sim.node.errors import ProtocolError
from sim.node.events import EventQueue
from sim.node.gpu_memory import GpuMemory
from sim.node.gpu_updates import GpuUpdates

MODEL = Model((50, 3, 4000, 70), 16, 3, (8, 16), (4, 1), "small",
              ((1, 3), (1, 1), (0, 5), (2, 2)))
GPU = GpuProfile("gpu", launch_us=1.0, memory_bandwidth_gb_s=1000.0, access_bytes=64, streams=1)
RULES = [Optimizer("sgd", 4.0), Optimizer("rowwise-adagrad", 0.2)]


class Gpu:
    """A node's GPU with the rows of a plan, and the packets that its host sends."""

    def __init__(self, node: int, model: Model, plan: ShardPlan, optimizer: Optimizer,
                 gpu: GpuProfile = GPU):
        self.events, self.sent = EventQueue(), []
        self.memory = GpuMemory(node, RowStore(model, 1), lambda *key: plan.owner_of(*key) == node,
                                gpu, 64, self.events,
                                lambda packet, now: self.sent.append(packet), lambda end: end)
        tables = np.flatnonzero(plan.owner_pooled).tolist()
        self.updates = GpuUpdates(node, self.memory, plan, tables, optimizer, gpu, None,
                                  self.events, lambda end: end)

    def run(self) -> None:
        for time, action in self.events.until(float("inf")):
            action(time)

    @property
    def written(self) -> int:
        """The last count that the host told its NIC; 0 without any."""
        return parse_steps(self.sent[-1], parse_header(self.sent[-1][0]).count)[0].count if (
            self.sent) else 0


def plan_of(nodes: int) -> ShardPlan:
    return ShardPlan.deal(MODEL, nodes).with_owner_tables(range(MODEL.tables))


def train(nodes: int, model: Model, optimizer: Optimizer, steps: int = 4) -> RowStore:
    """Train on random gradients; return all rows."""
    rng, draw, plan = np.random.default_rng(5), random.Random(nodes), plan_of(nodes)
    gpus = [Gpu(node, model, plan, optimizer) for node in range(nodes)]
    samples = next(iter(generate(model, 25 * steps, 1)))
    for step in range(steps):
        batch = samples.slice(25 * step, 25 * step + 25)
        gradients = rng.standard_normal((25, 4, 16)).astype(np.float32)
        lists: list[list[BagGradients]] = [[] for _ in gpus]
        first = 0
        for node, size in enumerate(share_sizes(25, nodes)):
            share = slice(first, first + size)
            first += size
            left, _, others = gpus[node].updates.share(
                batch.slice(share.start, share.stop), gradients[share], step)
            assert left.bag_lengths.shape[1] == 0
            for packet in gradient_bag_packets(others, node=node, step=step, payload_beats=22):
                head = parse_header(packet[0])
                _, bags = split_lists(payload_records(packet[1:], head.count), 16)
                for k, table in enumerate(bags.bags.tables.tolist()):
                    lists[plan.tables[table].owner].append(one_bag(bags, k))
        for gpu, bags in zip(gpus, lists):
            draw.shuffle(bags)
            actions = [lambda bag=bag: gpu.updates.take(bag, 0.0) for bag in bags]
            actions += [lambda: gpu.updates.begin(0.0), lambda: gpu.updates.end(len(bags), 0.0)]
            draw.shuffle(actions)
            for action in actions:
                assert gpu.written == step and gpu.updates.unfinished
                action()
                gpu.run()
            assert gpu.written == step + 1 and not gpu.updates.unfinished
            keys = batch.keys
            assert gpu.memory.end_step().tolist() == np.unique(keys[plan.owner_of(
                keys >> 36, keys & (1 << 36) - 1) == gpu.updates._node]).tolist()
    together = RowStore(model, 1)
    for gpu in gpus:
        together.write(*gpu.memory.store.written())
    return together


def one_bag(gradients: BagGradients, k: int) -> BagGradients:
    bags, ends = gradients.bags, np.cumsum(gradients.bags.lengths)
    return BagGradients(
        BagList(bags.tables[k:k + 1], bags.lengths[k:k + 1],
                bags.rows[ends[k] - bags.lengths[k]:ends[k]], bags.landings[k:k + 1],
                bags.wide[k:k + 1]), gradients.sources[k:k + 1], gradients.vectors[k:k + 1])


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("optimizer", RULES, ids=["sgd", "adagrad"])
def test_rows_are_those_of_the_reference(pooling, optimizer):
    model, steps = replace(MODEL, pooling=pooling), 4
    reference = EmbeddingTables(model, 1, optimizer, in_order=range(4))
    rng, samples = np.random.default_rng(5), next(iter(generate(model, 25 * steps, 1)))
    for step in range(steps):
        reference.update(samples.slice(25 * step, 25 * step + 25),
                         rng.standard_normal((25, 4, 16)).astype(np.float32))
    assert {train(nodes, model, optimizer, steps).digest() for nodes in (1, 2, 4)} == {
        reference.rows.digest()}


def test_protocol_errors():
    plan = plan_of(2)
    gpu = Gpu(0, MODEL, plan, RULES[0])
    foreign = next(number for number, table in enumerate(plan.tables) if table.owner == 1)
    own = next(number for number, table in enumerate(plan.tables) if table.owner == 0)

    def bag(table: int) -> BagGradients:
        return BagGradients(BagList(*(np.array([value]) for value in (table, 1, 0, 0, False))),
                            np.array([1]), np.ones((1, 16), np.float32))

    for table in (foreign, 99):
        with pytest.raises(ProtocolError, match=f"gradient of table {table}, whose rows its GPU"):
            gpu.updates.take(bag(table), 0.0)
    gpu.updates.take(bag(own), 0.0)
    with pytest.raises(ProtocolError, match="sent 1 bags with gradients, and reported 0"):
        gpu.updates.end(0, 0.0)
    with pytest.raises(ProtocolError, match="ended the bags of a step twice"):
        gpu.updates.end(1, 0.0)


def test_the_kernel_reads_and_writes_each_distinct_row_once():
    ends, slow = [], replace(GPU, memory_bandwidth_gb_s=1.0, kernel_us=0.0)
    for other in (0, 1):
        gpu = Gpu(0, MODEL, plan_of(1), RULES[0], slow)
        for source, row in ((1, 0), (2, other)):
            gpu.updates.take(BagGradients(
                BagList(*(np.array([value]) for value in (0, 1, row, 0, False))),
                np.array([source]), np.ones((1, 16), np.float32)), 0.0)
        gpu.updates.begin(0.0)
        gpu.updates.end(2, 0.0)
        ends += [time for time, _ in gpu.events.until(float("inf"))]
    assert ends[1] - ends[0] == pytest.approx(2 * slow.cycles_per_row(4 * 16))
