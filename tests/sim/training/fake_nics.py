"""Fake NICs for tests of the host's side of training: real protocol, numpy arithmetic.

A NIC receives messages of its host some cycles later and answers at once. A seed determines which
beats it spills and how it splits packets. Sums are the exact sums of :mod:`host.dlrm.exact_keys`.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from host.dlrm.dlrm import pool
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS
from host.timing.all_reduce import RingAllReduce
from host.timing.dense_time import DenseTime
from host.timing.gpu import GpuProfile
from host.timing.network import Network, NetworkProfile
from host.wire.packets import (
    header_beat,
    pack_records,
    parse_header,
    parse_records,
    records_to_beats,
)
from host.wire.partials import parse_partials, partial_packets
from host.wire.steps import (
    StepNews,
    parse_states,
    parse_steps,
    state_packets,
    step_packet,
)
from rtl.config import beats_of
from rtl.formats import (
    ErrorRecord,
    GradientRecord,
    LookupRecord,
    Opcode,
    RecordKind,
    Status,
    StepKind,
)
from sim.cluster.watchdog import StuckError
from sim.node.events import EventQueue
from sim.node.gpu_memory import GpuMemory
from sim.node.gradients import TrainingHost
from sim.node.step import Step
from sim.training.cluster import NicCluster, first_of, split_rows
from sim.training.comparison import Comparison
from sim.training.options import TrainOptions
from sim.training.tables import Clock, ClusterTables

NETWORK = NetworkProfile("test", 1.0, 100.0, 24, True)
GPU = GpuProfile("g", 4.0, 64.0, 64, 2, 1.0)
"""Launches of 1,000 cycles, 256 bytes and 4,000 operations a cycle."""

WAY = 100
"""Cycles between a host and its NIC."""


class FakeNode:
    """A real training host with a Python NIC."""

    def __init__(self, number: int, cluster: "FakeCluster", window: int, payload_beats: int):
        self.number, self.cluster = number, cluster
        self.events = EventQueue()
        self.store = RowStore(cluster.model, cluster.seed)
        self.finished: list[Step] = []
        self.sent: list[np.ndarray] = []
        memory = GpuMemory(number, self.store, self._owns, GPU, payload_beats, self.events,
                           self._from_host, awake=lambda end: end)
        self.training = TrainingHost(number, memory, window, min(payload_beats, window // 2),
                                     self.events, self._from_host)
        self.nic = FakeNic(self, random.Random(number))

    def _owns(self, tables, rows):
        return self.cluster.plan.owner_of(tables, rows, self.number) == self.number

    def _from_host(self, packet: np.ndarray, now: float) -> None:
        self.sent.append(packet)
        self.events.at(now + WAY, lambda now: self.nic.take(packet, now))

    def to_host(self, packet: np.ndarray, now: float) -> None:
        packet = packet.copy()
        packet[:1] |= header_beat(0, node=0, step=0, count=0, version=0,
                                  acknowledge=self.nic.consumed & 0xFFFF)

        def arrives(now: float) -> None:
            head = parse_header(packet[0])
            if head.opcode == Opcode.ERRORS:
                found = parse_records(ErrorRecord, packet[1:], head.count)
                self.training.errors(found["sample"], found["step"], found["status"])
            known = self.training.packet(packet, head, now)
            assert known == (head.opcode not in (Opcode.ERRORS, Opcode.CREDIT))

        self.events.at(now + WAY, arrives)

    def submit(self, step: Step, time: float) -> None:
        if step.left[self.number]:
            self.events.at(time, lambda now: self._look_up(step, now))

    def _look_up(self, step: Step, now: float) -> None:
        step.starts.setdefault(self.number, now)
        if self.nic.step < step.number:
            # Not all rows of the previous step are written.
            self.events.at(now + 20, lambda now: self._look_up(step, now))
            return
        first, last = step.shares[self.number:self.number + 2]
        share = step.samples.slice(first, last)
        vectors = np.empty((len(share.keys), self.cluster.model.dimension), np.float32)
        owners = self.cluster.plan.owner_of(share.tables, share.rows)
        for node in self.cluster.nodes:
            own = owners == node.number
            vectors[own], _ = node.store.read(share.keys[own])
        pooled = pool(vectors, share.bag_lengths.reshape(-1), self.cluster.model.nic_pooling)
        for at, bags in zip(range(first, last), pooled.reshape(*share.bag_lengths.shape, -1)):
            step.place(self.number, at, 0, bags if step.repeats is None else bags[
                step.repeats.new[at]])
        step.expand(self.number)
        step.ends[self.number] = now + 50 * (1 + self.number)
        self.finished.append(step)


class FakeNic:
    """A NIC's gradient path, in zero time."""

    def __init__(self, node: FakeNode, rng: random.Random):
        self.node, self.rng, self.step, self.consumed = node, rng, 0, 0
        self._new_step()
        self._parsers: dict[int, Callable] = {
            Opcode.GRADIENTS: self._gradients, Opcode.RETURNED: self._returned,
            Opcode.STATES: self._states, Opcode.WRITTEN: self._written}
        self.sent_rows = self.host_wrote = 0

    def _new_step(self) -> None:
        self.here: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
        self.missing = [0, 0]
        self.ends: set[int] = set()
        self.done: set[int] = set()
        self.sums: list[tuple[np.ndarray, np.ndarray]] = []
        self.wanted: dict[int, tuple[int, np.ndarray]] = {}
        self.rows_out = self.told = False

    def take(self, packet: np.ndarray, now: float) -> None:
        head = parse_header(packet[0])
        if head.opcode in (Opcode.GRADIENTS, Opcode.RETURNED):
            self.consumed += len(packet) - 1
            if self.rng.random() < 0.7:
                self._host(header_beat(Opcode.CREDIT, node=self.node.number, step=0, count=0), now)
            else:
                self.node.events.at(now + 500, lambda now: self._host(header_beat(
                    Opcode.CREDIT, node=self.node.number, step=0, count=0), now))
        self._parsers[head.opcode](packet, head, now)

    def _host(self, packet: np.ndarray, now: float) -> None:
        self.node.to_host(packet, now)

    def _header(self, count: int, opcode: Opcode) -> np.ndarray:
        return header_beat(opcode, node=self.node.number, step=self.step, count=count)

    def _refuse(self, step: int, status: Status, now: float) -> None:
        record = pack_records(ErrorRecord, count=1, sample=0xFFFFFFFF, step=step, status=status)
        self._host(np.concatenate((self._header(1, Opcode.ERRORS), records_to_beats(record))), now)

    def _gradients(self, packet: np.ndarray, head, now: float) -> None:
        fields = parse_records(GradientRecord, packet[1:], head.count)
        model = self.node.cluster.model
        if head.step != self.step & 0xFFFF:
            return self._refuse(head.step, Status.STEP, now)
        if fields["kind"][0] == RecordKind.EMPTY:
            return self._pass(0, now)
        if (fields["table"] >= model.tables).any():
            return self._refuse(head.step, Status.TABLE, now)
        if (fields["row"] >= np.array(model.rows)[fields["table"].view(np.int64)]).any():
            return self._refuse(head.step, Status.ROW, now)
        ends = np.flatnonzero(fields["kind"] == RecordKind.KEY_END) + 1
        lengths = np.diff(ends, prepend=0)
        values = packet[1 - -head.count // 8:].reshape(-1).view(np.float32)
        vectors = values[:len(ends) * model.dimension].reshape(len(ends), -1)
        if model.nic_pooling == "mean":
            vectors = vectors / lengths.astype(np.float32)[:, None]
        keys = (fields["table"] << np.uint64(KEY_ROW_BITS) | fields["row"]).view(np.int64)
        self.here[0].append(self._beats(keys, np.repeat(vectors, lengths, axis=0)))
        return None

    def _beats(self, keys, vectors) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of beats: key and number as one integer, and the values."""
        beats = beats_of(self.node.cluster.model.dimension)
        return ((keys[:, None] << 4 | np.arange(beats)).reshape(-1),
                vectors.reshape(len(keys) * beats, self.width))

    @property
    def width(self) -> int:
        return min(16, self.node.cluster.model.dimension)

    def _pass(self, level: int, now: float) -> None:
        """Sum the beats that have arrived, except spilled beats; end when no beat is spilled."""
        cluster = self.node.cluster
        places, values = (np.concatenate(parts) for parts in zip(
            (np.empty(0, np.int64), np.empty((0, self.width), np.float32)), *self.here[level]))
        unique = np.unique(places >> 4)
        may = level or cluster.partials == "rounded"
        spilled = np.isin(places >> 4, unique[cluster.entries:] if may else [])
        stay = places[~spilled], values[~spilled]
        if may:
            stay = sums_by_key(*stay)
        (self.sums if level else self.here_out).append(stay)
        self.here[level] = []
        self.missing[level] = int(spilled.sum())
        packets = self._partials(Opcode.SPILLED, places[spilled], values[spilled], level)
        report = step_packet(Opcode.STEP_REPORTS, [StepNews(
            StepKind.PASSED, self.missing[level], level)], node=self.node.number, step=self.step)
        # Spilled beats and the notice of spilling are sent by different blocks.
        packets.insert(self.rng.randrange(len(packets) + 1), report)
        for packet in packets:
            self._host(packet, now)
        if not self.missing[level]:
            (self._update if level else self._hand_on)(now)

    @property
    def here_out(self) -> list:
        return self.node.cluster.out[self.node.number]

    def _partials(self, opcode: Opcode, places, values, level: int = 0) -> list[np.ndarray]:
        order = np.array(self.rng.sample(range(len(places)), len(places)), int)
        keys, beats = places[order] >> 4, places[order] & 15
        return partial_packets(
            opcode, keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1, beats, values[order],
            node=self.node.number, step=self.step, level=level,
            payload_beats=self.rng.randrange(8, 24))

    def _returned(self, packet: np.ndarray, head, now: float) -> None:
        part = parse_partials(packet, head.count, self.width)
        level = int(part.levels[0])
        keys = part.tables << np.uint64(KEY_ROW_BITS) | part.rows
        self.here[level].append(((keys << np.uint64(4) | part.beats).view(np.int64), part.values))
        self.missing[level] -= head.count
        assert self.missing[level] >= 0
        if not self.missing[level]:
            self._pass(level, now)

    def _hand_on(self, now: float) -> None:
        cluster = self.node.cluster
        for places, values in self.here_out:
            keys = places >> 4
            owners = cluster.plan.owner_of(keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1)
            for owner in cluster.nodes:
                mine = owners == owner.number
                owner.nic.here[1].append((places[mine], values[mine]))
        self.here_out.clear()
        for owner in cluster.nodes:
            owner.events.at(now + WAY, lambda now, nic=owner.nic: nic.ended(self.node.number, now))

    def ended(self, source: int, now: float) -> None:
        self.ends.add(source)
        if len(self.ends) == len(self.node.cluster.nodes):
            self._pass(1, now)

    def _update(self, now: float) -> None:
        cluster = self.node.cluster
        places, sums = (np.concatenate(parts) for parts in zip(*self.sums))
        order = np.argsort(places)
        keys = places[order][::beats_of(cluster.model.dimension)] >> 4
        sums = sums[order].reshape(len(keys), cluster.model.dimension)
        if cluster.optimizer.name == "sgd":
            self._rows(keys, sums, np.zeros(len(keys), np.float32), now)
            self.rows_out = True
            return self._check_written(now)
        places = self.rng.sample(range(1 << 10), len(keys))
        self.wanted = {place: (key, total) for place, key, total in zip(
            places, keys.tolist(), sums)}
        for first in range(0, len(keys), 20):
            part = slice(first, first + 20)
            records = pack_records(LookupRecord, table=keys[part] >> KEY_ROW_BITS,
                                   row=keys[part] & (1 << KEY_ROW_BITS) - 1,
                                   landing=np.array(places[part]))
            self._host(np.concatenate((self._header(len(records), Opcode.STATE_REQUESTS),
                                       records_to_beats(records))), now)
        self.rows_out = not self.wanted
        return self._check_written(now)

    def _states(self, packet: np.ndarray, head, now: float) -> None:
        landings, states = parse_states(packet, head.count)
        found = [self.wanted.pop(landing) for landing in landings.tolist()]
        keys, sums = np.array([key for key, _ in found]), np.array([total for _, total in found])
        self._rows(keys, sums, states, now, landings)
        self.rows_out = not self.wanted
        self._check_written(now)

    def _rows(self, keys, sums, states, now: float, landings=None) -> None:
        vectors, _ = self.node.store.read(keys)
        vectors, states = self.node.cluster.optimizer.apply(vectors, states, sums)
        places, values = self._beats(keys, vectors)
        packets = self._partials(Opcode.ROW_UPDATES, places, values)
        self.sent_rows += len(places)
        if landings is not None:
            packets += state_packets(Opcode.STATE_UPDATES, landings, states,
                                     node=self.node.number, step=self.step, payload_beats=4)
            self.sent_rows += len(keys)
        self.rng.shuffle(packets)
        for packet in packets:
            self._host(packet, now)

    def _written(self, packet: np.ndarray, head, now: float) -> None:
        self.host_wrote, = (news.count for news in parse_steps(packet, head.count))
        self._check_written(now)

    def _check_written(self, now: float) -> None:
        assert self.host_wrote <= self.sent_rows
        if self.rows_out and not self.told and self.host_wrote == self.sent_rows & 0xFFFFFFFF:
            self.told = True
            for node in self.node.cluster.nodes:
                node.events.at(now + WAY, lambda now, nic=node.nic: nic.over(
                    self.node.number, now))

    def over(self, source: int, now: float) -> None:
        self.done.add(source)
        if len(self.done) == len(self.node.cluster.nodes):
            report = step_packet(Opcode.STEP_REPORTS, [StepNews(StepKind.DONE)],
                                 node=self.node.number, step=self.step)
            self.step += 1
            self._new_step()
            self._host(report, now)


class FakeNics(NicCluster):
    """A cluster of fake NICs, with the interface of `NicCluster` that `Training` uses.

    ``entries``: see `FakeCluster`. ``stuck_after``: number of events before the cluster stops.
    """

    entries, stuck_after = 1 << 20, float("inf")

    def __init__(self, options: TrainOptions, config, runtime, model: Model, plan: ShardPlan,
                 rows: RowStore, backend, wires, in_order=()):
        workload, optimizer = options.run.workload, options.learning.rule
        cluster = FakeCluster(model, workload.seed, optimizer, workload.nodes,
                              runtime.partials, self.entries, config.gradient_credits,
                              config.host_payload_beats, plan)
        cluster.events_left = self.stuck_after
        self.simulation = SimpleNamespace(
            cluster=cluster, start=10, waves=None, close=lambda: None,
            diagnose=lambda error: {"message": str(error)})
        for node, dealt in zip(cluster.nodes, split_rows(rows, cluster.plan)):
            node.store.write(*dealt.written())
        reference = EmbeddingTables(model, workload.seed, optimizer, workload.nodes,
                                    runtime.partials, first=first_of(workload, plan, model))
        reference.rows = rows
        self.clock = Clock(DenseTime(GPU, model), RingAllReduce(
            Network(NETWORK, workload.nodes), workload.nodes, 1000), 50.0, 10.0)
        self.tables = ClusterTables(cluster, self.clock, Comparison(
            reference, [node.store for node in cluster.nodes], cluster.plan),
            repeats=workload.host_repeats, first=first_of(workload, plan, model))

    def hardware(self, wall, ended, stuck):
        return {"repeats": None}

class FakeCluster:
    """Nodes whose events are processed in order of time.

    ``entries``: keys that a reduction holds in a pass.
    """

    def __init__(self, model: Model, seed: int, optimizer: Optimizer, nodes: int = 2,
                 partials: str = "exact", entries: int = 1 << 20, window: int = 64,
                 payload_beats: int = 24, plan: ShardPlan | None = None):
        self.model, self.seed, self.optimizer = model, seed, optimizer
        self.partials, self.entries = partials, entries
        self.plan = plan or ShardPlan.deal(model, nodes)
        self.out = defaultdict(list)
        self.nodes = [FakeNode(number, self, window, payload_beats) for number in range(nodes)]
        self.cycle, self.events_left = 0.0, float("inf")

    def run(self, work_left: Callable[[], bool],
            at_quantum: Callable[[int], None] = lambda cycle: None) -> None:
        while work_left():
            self.events_left -= 1
            node = min(self.nodes, key=lambda node: (
                float("inf") if node.events.next_time is None else node.events.next_time))
            if not node.events or self.events_left < 0:
                raise StuckError(f"nothing moves after cycle {self.cycle}", int(self.cycle))
            assert node.events.next_time >= self.cycle
            self.cycle = node.events.next_time
            time, action = next(node.events.until(float("inf")))
            action(time)
            at_quantum(int(self.cycle))
