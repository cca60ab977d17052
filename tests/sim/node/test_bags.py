"""Bags of owner-pooled tables: own bags, bags of other nodes, and requester pooling beside them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import pooled_reference
from host.dlrm.rows import row_values
from host.model import Model
from host.placement.shard import Placement, ShardPlan
from host.samples import concatenate
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.wire.bags import BagList, bag_words
from host.wire.packets import header_beat, parse_header, payload_records, records_to_beats
from host.wire.rows import row_answers
from rtl.config import preset
from rtl.formats import DescriptorKind, Opcode, PoolPlace
from sim.host_cpp.node import CompiledNode
from sim.job.faults import Windows
from sim.nic.ports import BEAT_WORDS, DATA_WORDS, LAST_BIT, with_framing
from sim.node.delivery import Delivery
from sim.node.errors import ProtocolError
from sim.node.node import Node
from sim.node.step import Step, StepResult
from tests.host.wire.test_bags import items_of
from tests.sim.edges import Edge
from tests.sim.node.hosts import NODE, NODES, SEED, model_of
from tests.sim.node.scripted import ScriptedNic

CONFIG = preset("tiny").with_fields(owner_bags=64)
GPU = load_profile("gpu_rtx8000", GpuProfile)
COUNTS = (9, 3, 30, 4, 12, 50, 6, 5)
OWNERS = (NODE, 0, NODE)


def plan_of(pools: Sequence[int], owners: Sequence[int | None] = OWNERS,
            weighted: Sequence[int] = ()) -> ShardPlan:
    """Return a plan with tables at ``owners``, None for copies, of which ``pools`` pool there and
    ``weighted`` have weights."""
    kinds = [DescriptorKind.REPLICATED if owner is None else DescriptorKind.TABLE
             for owner in owners]
    return ShardPlan(NODES, tuple(
        Placement(kind, rows, owner or 0, weighted=table in weighted)
        for table, (kind, rows, owner) in enumerate(zip(kinds, (5, 40, 300), owners)))).with_pools(
        [PoolPlace.OWNER if table in pools else PoolPlace.REQUESTER for table in range(3)])


def steps_of(model: Model, plan: ShardPlan, counts: Sequence[int] = COUNTS) -> list[Step]:
    samples, steps, at = concatenate(generate(model, sum(counts), 1)), [], 0
    for number, count in enumerate(counts):
        steps.append(Step.of(number, at, samples.slice(at, at + count), NODES,
                             (model.tables, model.width), plan=plan))
        at += count
    return steps


class Host:
    """The host of `NODE`, in Python or ``compiled``, and the packets between it and its NIC."""

    def __init__(self, model: Model, plan: ShardPlan, steps: Sequence[Step], slots: int = 0,
                 in_flight: int = 4, gpu: GpuProfile = GPU, compiled: bool = False):
        self.edge = Edge("host_tx", "host_rx")
        pcie = load_profile("pcie_gen3x16", PcieProfile)
        delivery = Delivery(completion_slots=slots, plan=plan, own_pooling=model.nic_pooling)
        self.node: Any = CompiledNode(
            NODE, self.edge, CONFIG, model, SEED, pcie, gpu,  # type: ignore[arg-type]
            in_flight, delivery=delivery) if compiled else Node(
            NODE, self.edge, CONFIG,  # type: ignore[arg-type]
            row_answers(model, SEED, NODE, CONFIG.host_payload_beats), model.width, pcie, gpu,
            in_flight, delivery=delivery, read=partial(row_values, model, SEED))
        self.cycle = self._read = 0
        for step in steps:
            self.node.submit(step, 0.0)
        self.turn([], 1)

    def turn(self, packets: Sequence[np.ndarray], cycles: int) -> None:
        """Let the NIC send ``packets``, and then wait for ``cycles``."""
        if packets:
            beats = np.concatenate([with_framing(packet) for packet in packets])
            self.edge.send(beats, np.arange(len(beats), dtype=np.uint64) + self.cycle)
            self.cycle += len(beats)
        end = self.cycle + cycles
        while True:
            self.edge.cycle = self.cycle
            self.node.host_quantum(self.cycle)
            if self.cycle == end:
                return
            self.cycle = min(end, self.cycle + self.node.pcie.latency)

    def sent(self) -> list[np.ndarray]:
        """Return the packets that the host has sent since the last call."""
        beats = np.concatenate([np.empty((0, BEAT_WORDS), np.uint32),
                                *(part for part, _ in self.edge.received)])[self._read:]
        self._read += len(beats)
        ends = np.flatnonzero(beats[:, LAST_BIT // 32] >> np.uint32(LAST_BIT % 32) & 1) + 1
        return [packet[:, :DATA_WORDS] for packet in np.split(beats, ends)[:-1]]


def foreign_lists(rng: Random, tables: Sequence[int], count: int,
                  weighted: Sequence[int] = ()) -> list[BagList]:
    """Return lists of 1 to 5 bags of ``tables`` with 1 to 60 keys; each has places of its own."""
    rows, found, place = (5, 40, 300), [], 0
    for _ in range(count):
        bags = min(rng.randint(1, 5), 64 - place)
        of = [rng.choice(tables) for _ in range(bags)]
        lengths = [rng.randint(1, 60) for _ in range(bags)]
        found.append(BagList(
            np.array(of), np.array(lengths), np.array([
                rng.randrange(rows[table]) for table, keys in zip(of, lengths)
                for _ in range(keys)]),
            np.arange(place, place + bags), np.zeros(bags, bool),
            *((np.array([rng.gauss(0, 1) for _ in range(sum(lengths))], np.float32),
               np.isin(of, weighted)) if set(of) & set(weighted) else ())))
        place += bags
    return found


@pytest.mark.parametrize(("pools", "slots", "refuse"), [
    ((0,), 0, 0.0), ((1,), 4, 0.0), ((0, 2), 2, 0.0), ((1, 2), 8, 0.3), ((0, 1, 2), 0, 0.0),
    ((0, 1, 2), 2, 0.0)])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize(("compiled", "weighted"), [(False, ()), (True, ()), (False, (0, 1, 2)),
                                                    (False, (2,))],
                         ids=["python", "compiled", "weighted", "partly weighted"])
def test_answers_are_those_of_requester_pooling(pools, slots, refuse, pooling, compiled, weighted):
    weighted = tuple(table for table in weighted if table in pools)
    model, plan = (replace(model_of(16, pooling), weighted_tables=weighted),
                   plan_of(pools, weighted=weighted))
    steps = steps_of(model, plan)
    rng = Random(f"{pools} {slots} {pooling}")
    held = [table for table in pools if OWNERS[table] == NODE]
    lists = foreign_lists(rng, held, 12, weighted) if held else []
    nic = ScriptedNic(model, steps, Delivery(completion_slots=slots), rng, refuse=refuse,
                      lists=lists)
    host = Host(model, plan, steps, slots, min(4, slots or 4), compiled=compiled)
    nic.take(host.sent())
    turns = 0
    while len(host.node.finished) < len(COUNTS) or nic.asked or host.node.bags.lists < len(lists):
        host.turn(nic.some(), rng.choice([1, 40, 300]))
        nic.take(host.sent())
        assert (turns := turns + 1) < 5000
    assert host.node.unanswered == 0 and not host.node.lacking and not host.node.queries_waiting
    own, counts = 0, host.node.bags
    for step in steps:
        share = slice(*step.shares[NODE:NODE + 2])
        answered = [step.first + at not in nic.refused for at in range(share.start, share.stop)]
        assert np.array_equal(step.status[share] == 0, answered)
        expected = pooled_reference(step.samples, model, SEED)[share][answered]
        assert np.array_equal(step.answers[share][answered].view(np.uint32),
                              expected.view(np.uint32))
        assert (step.filled[share][answered] == model.tables).all() and not step.left[NODE]
        own += int((step.samples.bag_lengths[share][:, held] > 0).sum())
    assert bool(nic.refused) == (refuse > 0) and counts.own == own
    assert (counts.lists, counts.foreign) == (len(lists), sum(map(len, lists)))
    assert bool(lists) + (own > 0) <= counts.launches <= len(lists) + len(COUNTS)


@pytest.mark.parametrize("pools", [(0,), (0, 1), (1, 2)])
def test_a_step_is_judged_with_its_own_bags(pools):
    """The answers of all nodes together equal the reference; without own bags they would not."""
    model, plan = model_of(8), plan_of(pools)
    step = steps_of(model, plan, [12])[0]
    expected = pooled_reference(step.samples, model, SEED)
    for node in range(NODES):
        share = range(*step.shares[node:node + 2])
        assert step.pools is not None
        sent = ~step.pools.own[node]
        for at in share:
            assert step.place(node, at, 0, expected[at][sent])
    assert StepResult.judge(step, model, SEED) == StepResult(
        sum(end - begin for node, (begin, end) in enumerate(zip(step.shares, step.shares[1:]))
            if not step.pools.own[node].any()), 0, 0)
    for node in range(NODES):
        bags = step.own_bags(node)
        full = step.samples.bag_lengths[slice(*step.shares[node:node + 2])] > 0
        step.place_own(node, expected[slice(*step.shares[node:node + 2])][
            full & step.pools.own[node]])
        assert set(bags.tables.tolist()) <= set(np.flatnonzero(step.pools.own[node]).tolist())
    assert StepResult.judge(step, model, SEED) == StepResult(12, 0, 0)


@pytest.mark.parametrize(("owners", "slots"), list(product(
    [(NODE, NODE, NODE), (NODE, None, NODE), (None, None, None)], [0, 2])))
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_share_with_own_bags_only_is_answered_without_its_nic(owners, slots, compiled):
    model, plan = model_of(16), plan_of((0, 1, 2), owners)
    steps = steps_of(model, plan)
    host = Host(model, plan, steps, slots, in_flight=2, compiled=compiled)
    assert host.node.unanswered == sum(step.shares[NODE + 1] - step.shares[NODE] for step in steps)
    for _ in range(400):
        host.turn([], 300)
    assert not host.sent() and host.node.unanswered == 0
    assert [step.number for step in host.node.finished] == list(range(len(COUNTS)))
    for step in steps:
        share = slice(*step.shares[NODE:NODE + 2])
        assert len(step.queries(NODE)) == 0
        assert np.array_equal(step.answers[share].view(np.uint32), pooled_reference(
            step.samples, model, SEED)[share].view(np.uint32))
        launch = cycles_of_us(GPU.latency_us + GPU.kernel_us)
        assert step.ends[NODE] >= step.starts[NODE] + launch
    # Two steps are in flight.
    assert steps[2].starts[NODE] >= min(steps[0].ends[NODE], steps[1].ends[NODE])
    assert host.node.progress == steps[-1].ends[NODE]


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_share_ends_when_its_nic_and_its_kernel_have_answered(compiled):
    """A slow kernel delays the end of a share; a fast one does not."""
    model, plan = model_of(16), plan_of((0,))
    ends = []
    for gpu in (GPU, replace(GPU, launch_us=400.0)):
        step = steps_of(model, plan, [9])[0]
        nic = ScriptedNic(model, [step], Delivery(), Random(1))
        host = Host(model, plan, [step], gpu=gpu, compiled=compiled)
        nic.take(host.sent())
        for _ in range(300):
            host.turn(nic.some(), 40)
            nic.take(host.sent())
        assert not step.left[NODE]
        assert host.node.unanswered == (3 if gpu is not GPU else 0)
        host.turn([], 200_000)
        assert host.node.finished == [step] and host.node.unanswered == 0
        ends.append(step.ends[NODE] - step.starts[NODE])
    assert ends[1] >= cycles_of_us(400.0) > ends[0]


@pytest.mark.parametrize("weighted", [(), (2,), (0, 1, 2)])
def test_kernels_read_the_weights_of_weighted_bags(weighted):
    """Memory is slow, and its time is exact: rows, indices, weights and vectors."""
    gpu = replace(GPU, memory_bandwidth_gb_s=0.01)
    model = replace(model_of(16), weighted_tables=weighted)
    plan = plan_of((0, 1, 2), (NODE, NODE, NODE), weighted)
    (step,) = steps_of(model, plan, [9])
    host = Host(model, plan, [step], gpu=gpu)
    host.turn([], 10_000_000)
    lengths = step.samples.bag_lengths[slice(*step.shares[NODE:NODE + 2])]
    rows, bags, weights = lengths.sum(), (lengths > 0).sum(), lengths[:, weighted].sum()
    assert step.ends[NODE] - step.starts[NODE] == pytest.approx(
        cycles_of_us(gpu.latency_us) + gpu.cycles_of_bags(rows, bags, 64, weights))
    assert gpu.cycles_of_bags(rows, bags, 64, weights) - gpu.cycles_of_bags(
        rows, bags, 64) == pytest.approx(4 * weights / gpu.stream_bytes_per_cycle)
    # Bags of other nodes, whose vectors leave when the kernel ends.
    table = weighted[-1] if weighted else 0
    words = bag_words(replace(
        bags_of((table,), (40,), (0,) * 40), **{
            "weights": np.ones(40, np.float32), "weighted": np.ones(1, bool)} if weighted else {}))
    begin = host.cycle
    host.turn([np.concatenate((header_beat(Opcode.BAG_LISTS, node=NODE, step=0, count=len(words)),
                               records_to_beats(words)))], 1)
    while not host.sent():
        host.turn([], 1000)
    kernel = cycles_of_us(gpu.latency_us) + gpu.cycles_of_bags(40, 1, 64, 40 * bool(weighted))
    assert kernel < host.cycle - begin < kernel + 3000


def test_a_silent_gpu_pools_nothing():
    model, plan = model_of(16), plan_of((0, 1, 2), (NODE, NODE, NODE))
    steps = steps_of(model, plan, [9])
    host = Host(model, plan, [])
    host.node.silent_gpu = Windows([(0.0, float("inf"))])
    host.node.submit(steps[0], 1.0)
    host.turn([], 100_000)
    assert not host.node.finished and host.node.unanswered == 3
    assert len(host.node.lacking) == 3


@pytest.mark.parametrize("pools", [(1,), (0, 1)])
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_packets_of_queries_cut_no_bag(pools, compiled):
    model = replace(model_of(16), bags=((1, 1), (0, 200), (0, 6)))
    plan = plan_of(pools)
    steps = steps_of(model, plan, [40])
    host = Host(model, plan, steps, compiled=compiled)
    nic = ScriptedNic(model, steps, Delivery(), Random(2))
    found, cut = [], 0
    for _ in range(200):
        packets = host.sent()
        for packet in packets:
            head = parse_header(packet[0])
            if head.opcode == Opcode.QUERIES:
                items = items_of([int(word) for word in payload_records(packet[1:], head.count)])
                cut += items[0][0] != "sample"
                found += items
        nic.take(packets)
        host.turn(nic.some(), 100)
    assert host.node.finished and cut > 0
    share = steps[0].samples.slice(*steps[0].shares[NODE:NODE + 2])
    bags = [item for item in found if item[0] == "bag"]
    assert [len(bag[3]) for bag in bags] == [
        keys for keys in share.bag_lengths[:, 1].tolist() if keys]
    assert [row for bag in bags for row in bag[3]] == share.rows[share.tables == 1].tolist()


def bags_of(tables=(0,), lengths=(1,), rows=(0,), landings=(0,)) -> BagList:
    return BagList(*map(np.array, (tables, lengths, rows, landings)), np.zeros(len(tables), bool))


@pytest.mark.parametrize(("words", "count", "message"), [
    (bag_words(bags_of(tables=(1,))), None, "node 1 sent its host a bag of table 1, whose bags it "
                                            "does not pool"),
    (bag_words(bags_of(tables=(2,))), None, "a bag of table 2, whose bags it does not pool"),
    (bag_words(bags_of(tables=(77,))), None, "a bag of table 77, whose bags it does not pool"),
    (bag_words(bags_of(rows=(5,))), None, "node 1 requested row 5 of table 0, which the table does "
                                          "not have"),
    (bag_words(replace(bags_of(), weights=np.ones(1, np.float32), weighted=np.ones(1, bool))),
     None, "node 1 sent its host a bag of table 0 with weights"),
    (bag_words(bags_of(landings=(64,))), None, "sent its host a bag with place 64 of 64"),
    (bag_words(bags_of())[:1], None, "sent its host a list of bags: bag 0 of a list has 2 words, "
                                     "but 1 are left"),
    (bag_words(bags_of()), 9, "sent its host a packet of opcode 0x32 whose count does not fit"),
    (bag_words(bags_of()), 0, "sent its host a packet of opcode 0x32 whose count does not fit")])
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_list_that_violates_the_protocol(words, count, message, compiled):
    host = Host(model_of(16), plan_of((0, 1)), [], compiled=compiled)
    if compiled and count is None:
        message = "a list of bags of step 0 with a bag that is not whole, or not this node's"
    packet = np.concatenate((header_beat(Opcode.BAG_LISTS, node=NODE, step=0, count=len(
        words) if count is None else count), records_to_beats(words)))
    with pytest.raises(ProtocolError, match=re.escape(message)):
        host.turn([packet], 1000)


def test_a_bag_without_its_weights():
    host = Host(model_of(16), plan_of((0, 1), weighted=(0,)), [])
    words = bag_words(bags_of())
    packet = np.concatenate((header_beat(Opcode.BAG_LISTS, node=NODE, step=0, count=len(words)),
                             records_to_beats(words)))
    with pytest.raises(ProtocolError, match="sent its host a bag of table 0 without weights"):
        host.turn([packet], 1000)


def test_lists_are_rejected_without_owner_pooled_tables():
    host = Host(model_of(16), plan_of((0,)), [])
    host.node.bags = None
    packet = np.concatenate((header_beat(Opcode.BAG_LISTS, node=NODE, step=0, count=2),
                             records_to_beats(bag_words(bags_of()))))
    with pytest.raises(ProtocolError, match="sent opcode 0x32 to its host"):
        host.turn([packet], 1000)
