"""A node's host for tests of training, in numpy, and a cache that holds some of its rows."""

import random
from collections import deque

import numpy as np

from host.dlrm.row_store import RowStore
from host.samples import KEY_ROW_BITS
from host.wire.gradients import gradient_packets
from host.wire.packets import (
    header_beat,
    pack_records,
    parse_header,
    parse_records,
    records_to_beats,
)
from host.wire.partials import Partials, parse_partials, partial_packets
from host.wire.steps import parse_states, parse_steps, state_packets, written_packet
from rtl.config import LANES
from rtl.formats import GradientRecord, LookupRecord, Opcode, RecordKind, StepKind

__all__ = ["PORTS", "Host", "end_packet", "received"]

PORTS = {Opcode.GRADIENTS: "gradients", Opcode.RETURNED: "returned", Opcode.STATES: "states",
         Opcode.WRITTEN: "written", Opcode.PARTIALS: "partials", Opcode.STEPS: "steps"}
"""Ports of a training path for the parser's payload of each packet."""

_COUNTED = Opcode.RETURNED, Opcode.PARTIALS


def end_packet(node: int, step: int) -> np.ndarray:
    """Return the packet that ends a step's gradients."""
    record = pack_records(GradientRecord, count=1, row=0, table=0, kind=RecordKind.EMPTY)
    return np.concatenate((header_beat(Opcode.GRADIENTS, node=node, step=step, count=1),
                           records_to_beats(record)))


def received(packet: np.ndarray) -> tuple[str, list[dict]]:
    """Return the port of a packet's payload, and its beats as the parser outputs them."""
    header = parse_header(packet[0])
    opcode, left, beats = Opcode(header.opcode), header.count, []
    for number, words in enumerate(packet[1:], 2):
        beat = {"data": int.from_bytes(words.tobytes(), "little"), "records": min(8, left),
                "source": header.source, "step": header.step, "last": int(number == len(packet))}
        beats.append({"beat": beat, "count": left} if opcode in _COUNTED else beat)
        left = max(0, left - 8)
    return PORTS[opcode], beats


class Host:
    """Rows in GPU memory, and the host's part of the protocol (docs/training.md).

    send: packets that leave now.
    waiting: packets of gradients and returned spills, which need credit.
    spoil: for each level, how often the first returned beat names no table.

    ``handle`` takes a packet of the NIC.
    """

    def __init__(self, node: int, model, seed: int, *, dimension: int, payload_beats: int):
        self.node, self.dimension, self.payload_beats = node, dimension, payload_beats
        self.rows = RowStore(model, seed)
        self.send, self.waiting = deque(), deque()
        self.written, self.done, self.spilled, self.passes = 0, [], [0, 0], []
        self.spoil = [0, 0]
        self._kept: list[list[Partials]] = [[], []]
        self._owed: list[tuple[int, int, int]] = []
        self._states: dict[int, int] = {}
        self._beats: dict[int, list] = {}

    def begin(self, tables, rows, lengths, gradients, step: int) -> None:
        """Send a step's gradients, and its end."""
        self.waiting += gradient_packets(
            tables, rows, lengths, gradients, node=self.node, step=step,
            payload_beats=self.payload_beats)
        self.waiting.append(end_packet(self.node, step))

    def handle(self, packet: np.ndarray) -> None:
        header = parse_header(packet[0])
        opcode, count, step = Opcode(header.opcode), header.count, header.step
        if opcode == Opcode.ROW_UPDATES:
            self._update(parse_partials(packet, count, min(LANES, self.dimension)), step)
        elif opcode == Opcode.STATE_REQUESTS:
            self._give_states(packet, count, step)
        elif opcode == Opcode.STATE_UPDATES:
            for landing, state in zip(*parse_states(packet, count), strict=True):
                key = np.array([self._states.pop(int(landing))])
                vectors, _ = self.rows.read(key)
                self.rows.write(key, vectors, np.array([state], np.float32))
            self._count(count, step)
        elif opcode == Opcode.SPILLED:
            partials = parse_partials(packet, count, min(LANES, self.dimension))
            level = header.destination
            assert set(partials.levels.tolist()) == {level}
            self.spilled[level] += count
            self._kept[level].append(partials)
        else:
            assert opcode == Opcode.STEP_REPORTS, opcode
            for news in parse_steps(packet, count):
                if news.kind == StepKind.DONE:
                    self.done.append(step)
                else:
                    assert news.kind == StepKind.PASSED
                    self.passes.append((step, news.level, news.count))
                    if news.count:
                        self._owed.append((step, news.level, news.count))
        self._return()

    def _count(self, number: int, step: int) -> None:
        self.written += number
        self.send.append(written_packet(self.written, node=self.node, step=step))

    def _update(self, partials: Partials, step: int) -> None:
        beats = -(-self.dimension // LANES)
        for table, row, beat, values in zip(
                partials.tables, partials.rows, partials.beats, partials.values, strict=True):
            key = int(row) | int(table) << KEY_ROW_BITS
            here = self._beats.setdefault(key, [])
            assert beat == len(here)
            here.append(values)
            if len(here) == beats:
                _, states = self.rows.read(np.array([key]))
                self.rows.write(np.array([key]), np.concatenate(self._beats.pop(key))[None], states)
        self._count(len(partials.values), step)

    def _give_states(self, packet: np.ndarray, count: int, step: int) -> None:
        asked = parse_records(LookupRecord, packet[1:], count)
        keys = (asked["row"] | asked["table"] << np.uint64(KEY_ROW_BITS)).astype(np.int64)
        for landing, key in zip(asked["landing"].tolist(), keys.tolist(), strict=True):
            assert landing not in self._states
            self._states[landing] = key
        _, states = self.rows.read(keys)
        self.send += state_packets(Opcode.STATES, asked["landing"], states, node=self.node,
                                   step=step, payload_beats=self.payload_beats)

    def _return(self) -> None:
        """Return the spilled beats of a pass, once all have arrived."""
        for owed in list(self._owed):
            step, level, count = owed
            kept = [np.concatenate(parts) for parts in zip(*self._kept[level], strict=True)]
            if not kept or len(kept[0]) != count:
                continue
            self._owed.remove(owed)
            self._kept[level].clear()
            tables, rows, beats, _, values = kept
            order = np.random.default_rng(count).permutation(count)
            if self.spoil[level]:
                self.spoil[level] -= 1
                tables[order[0]] = 4095
            self.waiting += partial_packets(
                Opcode.RETURNED, tables[order], rows[order], beats[order], values[order],
                node=self.node, step=step, payload_beats=self.payload_beats, level=level)


class Cache:
    """Answers lookups for updates, out of order; caches about half of the rows."""

    def __init__(self, host: Host, seed: int):
        self.host, self.rng = host, random.Random(seed)
        self.answers: list[tuple[int, list[dict]]] = []
        self.slots: dict[int, int] = {}
        self.written: dict[int, dict[int, int]] = {}

    def look_up(self, now: int, row: int, table: int, number: int) -> None:
        key = row | table << KEY_ROW_BITS
        vector, _ = self.host.rows.read(np.array([key]))
        padded = np.zeros(-(-self.host.dimension // LANES) * LANES, np.float32)
        padded[:self.host.dimension] = vector[0]
        held = self.rng.random() < 0.5
        beats = [{"data": int.from_bytes(part.tobytes(), "little"), "meta": number, "last": 0,
                  "slot": number % 64, "held": int(held)} for part in padded.reshape(-1, LANES)]
        beats[-1]["last"] = 1
        if held:
            self.slots[number % 64] = key
        self.answers.append((now + self.rng.randrange(2, 20), beats))

    def due(self, now: int) -> list[dict]:
        for answer in self.answers:
            if answer[0] <= now:
                self.answers.remove(answer)
                return answer[1]
        return []
