"""A NIC that answers its host by script."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from host.dlrm.dlrm import pool, pooled_reference
from host.dlrm.rows import row_values
from host.model import Model
from host.samples import KEY_ROW_BITS
from host.wire.bags import BagList, bag_words
from host.wire.completions import Completion, completion_packet, flush_packet
from host.wire.packets import (
    field_place,
    header_beat,
    parse_header,
    parse_records,
    payload_records,
    record_fields,
    records_to_beats,
    share_end,
)
from rtl.formats import (
    EMPTY_INDEX,
    TAGS_PER_BEAT,
    Opcode,
    QueryRecord,
    RecordKind,
    SampleRecord,
    StepOpenRecord,
)
from sim.job.settings import COMPLETION_BASE
from sim.nic.ports import DATA_WORDS
from sim.node.delivery import Delivery
from sim.node.step import Step
from tests.sim.node.hosts import NODE, SEED, errors, indices, pooled, vectors

__all__ = ["ScriptedNic"]


class ScriptedNic:
    """A NIC that answers the queries of its host in an order drawn from a seed.

    Parameters
    ----------
    model: of the rows.
    steps: steps of the host.
    delivery: form of the answers.
    rng: draws orders and cuts of packets.
    refuse: probability of rejecting a sample.
    forget: probability of forgetting a key, and sending its vector again.
    flush: whether it flushes before it completes a step.
    lists: lists of other nodes' bags for the GPU; the NIC checks the sums bit for bit.

    Members: ``refused``, rejected samples; ``kinds``, opcodes of the packets sent; ``asked``,
        expected sums of bags by place that the GPU has not sent.
    """

    def __init__(self, model: Model, steps: Sequence[Step], delivery: Delivery, rng: Random, *,
                 refuse: float = 0.0, forget: float = 0.0, flush: bool = True,
                 lists: Sequence[BagList] = ()):
        self._model, self._delivery, self._rng = model, delivery, rng
        self._refuse, self._forget, self._flush = refuse, forget, flush
        self._steps = {step.number & 0xFFFF: step for step in steps}
        self._records: dict[int, np.ndarray] = {}
        # By kind, because each kind is in the order of the steps: the packets and their steps.
        self._queues: list[deque[tuple[int, np.ndarray]]] = [deque() for _ in range(3)]
        self._left: dict[int, int] = {}
        self._status: dict[int, int] = {}
        self._words: deque[np.ndarray] = deque()
        self._opened: dict[int, int] = {}
        self._ended: set[int] = set()
        self._consumed = self._tag = self._freed = 0
        self._lists = deque(lists)
        self.asked: dict[int, np.ndarray] = {}
        self.refused: set[int] = set()
        self.kinds: list[int] = []

    def take(self, packets: Sequence[np.ndarray]) -> None:
        """Take packets of the host."""
        for packet in packets:
            head = parse_header(packet[0])
            if head.opcode == Opcode.QUERIES:
                self._queries(packet, head.step, head.count)
            elif head.opcode == Opcode.GPU_BAGS:
                self._take_sums(packet, head.count)
            elif head.opcode == Opcode.STEP_OPEN:
                self._open(packet, head.step, head.count)
            else:
                assert head.opcode == Opcode.FLUSHED and (head.count, len(packet)) == (1, 2)
                assert np.array_equal(packet[1:], self._flush_of(head.step)[1:])
                self._complete(head.step)

    def _take_sums(self, packet: np.ndarray, count: int) -> None:
        tags = packet[1:].reshape(-1).view("<u2")[:count].tolist()
        values = packet[1 - -count // TAGS_PER_BEAT:].reshape(-1)
        width = self._model.width
        for at, tag in enumerate(tags):
            assert np.array_equal(values[at * width:(at + 1) * width],
                                  self.asked.pop(tag).view(np.uint32))

    def _ask(self) -> np.ndarray:
        """Return the packet of the next list of bags, and expect its sums."""
        bags = self._lists.popleft()
        vectors = row_values(self._model, SEED, bags.key_tables, bags.rows)
        sums = pool(vectors, bags.lengths, "sum", bags.weights, bags.weighted)
        for landing, vector in zip(bags.landings.tolist(), sums):
            assert landing not in self.asked
            self.asked[landing] = vector
        words = bag_words(bags)
        head = header_beat(Opcode.BAG_LISTS, node=NODE, step=5, count=len(words))
        return np.concatenate((head, records_to_beats(words)))

    def _queries(self, packet: np.ndarray, step: int, count: int) -> None:
        self._consumed += len(packet) - 1
        assert (step in self._opened) == bool(self._delivery.completion_slots)
        records = np.concatenate((self._records.get(step, np.empty(0, np.uint64)),
                                  payload_records(packet[1:], count)))
        self._records[step] = records
        expected = self._steps[step].queries(NODE)
        assert np.array_equal(records, expected[:len(records)])
        if len(records) == len(expected):
            before = sum(map(len, self._queues))
            if self._delivery.pooling is None:
                self._answer_pooled(step)
            else:
                assert np.array_equal(records[-2:], share_end())
                self._answer_unique(step, records[:-2])
            self._left[step] = sum(map(len, self._queues)) - before

    def _open(self, packet: np.ndarray, step: int, count: int) -> None:
        fields = {name: int(value[0]) for name, value in parse_records(
            StepOpenRecord, packet[1:], 1).items()}
        first, last = self._steps[step].shares[NODE:NODE + 2]
        assert (len(packet), count) == (2, 1) and step not in self._records
        assert fields["step"] == step
        assert fields["samples"] == last - first + (self._delivery.pooling is not None)
        # Slots are returned in the order in which they were given.
        assert self._freed <= fields["freed"]
        self._freed = fields["freed"]
        assert set(list(self._opened)[:self._freed]) <= self._ended
        assert len(self._opened) - self._freed < self._delivery.completion_slots
        self._opened[step] = len(self._opened)

    def _answer_pooled(self, number: int) -> None:
        step = self._steps[number]
        expected = pooled_reference(step.samples, self._model, SEED)
        for at in range(step.shares[NODE], step.shares[NODE + 1]):
            sample = step.first + at
            bags = expected[at] if step.pools is None else expected[at][~step.pools.own[NODE]]
            if not self._refuses(number, sample):
                self._queues[0] += [(number, pooled(
                    number, sample, first, values, first + len(values) == len(bags)))
                    for first, values in self._cut(bags, 2)]

    def _refuses(self, number: int, sample: int) -> bool:
        if self._rng.random() >= self._refuse:
            return False
        status = self._rng.randint(1, 5)
        self.refused.add(sample & 0xFFFFFFFF)
        self._status.setdefault(number, status)
        self._queues[2].append((number, errors([(sample, number, status)])))
        return True

    def _answer_unique(self, number: int, records: np.ndarray) -> None:
        known: dict[int, int] = {}
        keys: list[int] = []
        runs: list[list[tuple[int, int, int, bool]]] = []  # sample, slot, index, last
        fields = record_fields(QueryRecord, records)
        heads = [*np.flatnonzero(fields["kind"] == RecordKind.SAMPLE).tolist(), len(records)]
        samples = record_fields(SampleRecord, records)["sample"]
        joined = False
        for begin, end in pairwise(heads):
            if self._refuses(number, int(samples[begin])):
                joined = False
                continue
            if not joined:
                runs.append([])
            joined = True
            for at in range(begin + 1, end):
                index = EMPTY_INDEX
                if fields["kind"][at] != RecordKind.EMPTY:
                    key = int(fields["table"][at]) << KEY_ROW_BITS | int(fields["row"][at])
                    if key not in known or self._rng.random() < self._forget:
                        known[key] = len(keys)
                        keys.append(key)
                    index = known[key]
                runs[-1].append((int(samples[begin]), at - begin - 1, index, at == end - 1))
        tables, rows = np.divmod(np.array(keys, np.int64), 1 << KEY_ROW_BITS)
        values = row_values(self._model, SEED, tables, rows)
        parts = self._cut(values, 7)
        if not parts or self._rng.random() < 0.3:
            parts.append((len(values), values[:0]))
        self._queues[0] += [(number, vectors(
            number, first, part, last=at == len(parts) - 1))
            for at, (first, part) in enumerate(parts)]
        self._queues[1] += [(number, indices(
            number, part[0][0], part[0][1], (part[-1][0] - part[0][0] & 0xFFFFFFFF) + 1,
            part[-1][3], [index for _, _, index, _ in part]))
            for run in runs for _, part in self._cut(run, 40)]

    def _cut(self, items: Any, most: int) -> list[tuple[int, Any]]:
        """Cut ``items`` into parts of at most ``most``, each with the index of its first."""
        parts, at = [], 0
        while at < len(items):
            some = self._rng.randint(1, most)
            parts.append((at, items[at:at + some]))
            at += some
        return parts

    def some(self) -> list[np.ndarray]:
        """Return the next packets of the NIC."""
        packets = []
        for _ in range(self._rng.randint(0, 6)):
            if self._lists and self._rng.random() < 0.3:
                packets.append(self._ask())
            full = [queue for queue in self._queues if queue]
            if self._words and (not full or self._rng.random() < 0.4):
                packets.append(self._words.popleft())
            elif full:
                number, packet = self._rng.choice(full).popleft()
                packets.append(packet)
                self._left[number] -= 1
                if not self._left[number] and self._delivery.completion_slots:
                    if self._flush:
                        self._words.append(self._flush_of(number))
                    else:
                        self._complete(number)
        packets = packets or [header_beat(Opcode.CREDIT, node=NODE, step=0, count=0)]
        self.kinds += [parse_header(packet[0]).opcode for packet in packets]
        offset, _ = field_place("credit")
        credit = np.zeros((1, DATA_WORDS), np.uint32)
        credit[0, offset // 32] = (self._consumed & 0xFFFF) << offset % 32
        return [np.concatenate((packet[:1] | credit, packet[1:])) for packet in packets]

    def _flush_of(self, number: int) -> np.ndarray:
        opening = self._opened[number]
        return flush_packet(opening % self._delivery.completion_slots, opening * 77 & 0xFFFF,
                            node=NODE, step=number)

    def _complete(self, number: int) -> None:
        lap, slot = divmod(self._opened[number], self._delivery.completion_slots)
        self._ended.add(number)
        self._words.append(completion_packet(Completion(
            self._status.get(number, 0), number, lap + 1 & 0xFF, slot, COMPLETION_BASE + 4 * slot),
            node=NODE))
