"""Hostile messages to a NIC from its host, beside those of a run."""

import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from host.wire.packets import parse_headers
from rtl.config import NicConfig
from rtl.formats import NO_SAMPLE, Opcode
from sim.nic.ports import Packets
from sim.node.host_port import HostPort
from sim.node.node import Node
from tests.fuzz.frames import Changed, beats_of

__all__ = ["HIGH", "Messages", "StormyPort"]

HIGH = 1 << 31
"""First sample number of hostile messages."""

_BEAT, _FULL = 64, (1 << 64) - 1
_OPCODE, _FINAL_BEAT, _STEP, _COUNT = 43, 47, 48, 58
_RECORDS = (Opcode.QUERIES, Opcode.STEP_OPEN, Opcode.FLUSHED, Opcode.READ_DATA)
_OF_TRAINING = (Opcode.GRADIENTS, Opcode.RETURNED, Opcode.STATES, Opcode.WRITTEN)
_VECTORS = (Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS, Opcode.GPU_BAGS)
_PAID = (Opcode.GRADIENTS, Opcode.RETURNED)
_RECORDS_AND_VALUES = (Opcode.GRADIENTS, Opcode.BAG_GRADIENTS)
_OF_BAGS = (Opcode.GPU_BAGS, Opcode.BAG_GRADIENTS)
_SAMPLE = 3 << 48
_FAR = 1 << 15
"""First landing that is never in use."""


class Messages:
    """Makes hostile messages.

    Parameters
    ----------
    config: of the NIC.
    dimension: of a vector, one lane or one beat.
    honest: recorded messages of a run.
    chance: random numbers.
    """

    def __init__(self, config: NicConfig, dimension: int, honest: Sequence[bytes],
                 chance: random.Random):
        self._longest, self._training = config.host_payload_beats, config.training
        self._dimension, self._honest, self._chance = dimension, honest, chance
        self._slots, self._tables = config.sample_slots, config.tables
        self._known = {*_RECORDS, *_VECTORS, *_OF_TRAINING, *_OF_BAGS}.difference(
            () if config.owner_bags else _OF_BAGS,
            () if config.training else (*_OF_TRAINING, Opcode.BAG_GRADIENTS))

    def malformed(self) -> Changed:
        """Return a message that a NIC must reject as a whole."""
        chance = self._chance
        while True:
            data = bytearray(chance.choice(self._honest))
            keep, err = _FULL, 0
            for _ in range(chance.choice((1, 1, 2))):
                kind = chance.randrange(7)
                if kind == 0:
                    data[_OPCODE] = chance.randrange(256)
                elif kind == 1:
                    data[42] = chance.randrange(256)
                elif kind == 2:
                    struct.pack_into("<H", data, _COUNT, chance.choice(
                        (0, 1, 8, 0xFFFF, chance.randrange(1 << 16))))
                elif kind == 3:
                    del data[_BEAT * (1 + chance.randrange(len(data) // _BEAT)):]
                elif kind == 4:
                    data += chance.randbytes(_BEAT * chance.choice((1, 1, 2, self._longest, 150)))
                elif kind == 5:
                    keep = _FULL >> chance.randrange(1, 65)
                else:
                    err = 1
            if err or keep != _FULL or not self.fits(data):
                return Changed(bytes(data), keep, err, "malformed")

    def anything(self) -> Changed:
        """Return a valid or invalid message of a host."""
        chance = self._chance
        if chance.random() < 0.3:
            return chance.choice((self.malformed, self.foreign))()
        data = bytearray(chance.choice(self._honest))
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            at = chance.choice((_OPCODE, _STEP, _COUNT, chance.randrange(42, _BEAT),
                                chance.randrange(_BEAT, len(data)), chance.randrange(len(data))))
            data[at] = chance.choice((chance.randrange(256), data[at] ^ 1 << chance.randrange(8)))
        return Changed(bytes(data), _FULL, 0, "anything")

    def fits(self, data: bytes | bytearray) -> bool:
        """Whether a NIC takes a message for a whole message."""
        beats = len(data) // _BEAT - 1
        count, = struct.unpack_from("<H", data, _COUNT)
        opcode = data[_OPCODE]
        if data[42] != 1 or opcode not in self._known or not 0 < count <= 8 * self._longest:
            return False
        if beats > self._longest:
            return False
        if opcode == Opcode.GPU_BAGS and data[_FINAL_BEAT]:  # vectors have one beat
            return False
        left = beats - (-(-count // 32) if opcode in _VECTORS else -(-count // 8))
        if opcode in _VECTORS or opcode == Opcode.RETURNED:
            return left == -(-count * self._dimension // 16)
        return left == 0 or (opcode in _RECORDS_AND_VALUES and left > 0)

    def foreign(self) -> Changed:
        """Return a whole message about samples, landings or keys that the run does not have."""
        chance = self._chance
        opcode = Opcode.QUERIES if chance.random() < 0.6 else Opcode.GPU_VECTORS
        if opcode == Opcode.QUERIES:
            records = self._queries()
            payload = b"".join(record.to_bytes(8, "little") for record in records)
            count = len(records)
        else:
            count = chance.randrange(1, 33)
            tags = b"".join(struct.pack("<H", _FAR | chance.randrange(_FAR)) for _ in range(count))
            payload = tags + bytes(-len(tags) % _BEAT) + chance.choice(
                (chance.randbytes, bytes))(4 * self._dimension * count)
        payload += bytes(-len(payload) % _BEAT)
        head = bytearray(chance.randbytes(42) + bytes(22))
        head[42], head[_OPCODE] = 1, opcode
        struct.pack_into("<H", head, _STEP, chance.choice((0, 1, chance.randrange(1 << 16))))
        struct.pack_into("<H", head, _COUNT, count)
        return Changed(bytes(head) + payload, _FULL, 0, opcode.name)

    def _queries(self) -> list[int]:
        """Return records: samples, valid and invalid, and some at random."""
        chance, records = self._chance, []
        for _ in range(chance.choice((1, 1, 2, 4))):
            slots = chance.choice((1, 1, 2, 5, 0, self._slots + 1, chance.randrange(1 << 16)))
            records.append(chance.randrange(HIGH, NO_SAMPLE - 1) | slots << 32 | _SAMPLE)
            for place in range(min(slots, 6) - (chance.random() < 0.1)):
                key = chance.choice((chance.randrange(7), chance.randrange(1 << 36))) | (
                    chance.choice((chance.randrange(5), chance.randrange(64),
                                   chance.randrange(1 << 12))) << 36)
                kind = chance.choice((1, 1, 1, 0, 2)) if place < slots - 1 else (
                    chance.choice((1, 1, 1, 1, 2, 0)))
                records.append(key | kind << 48)
            if chance.random() < 0.1:
                record = chance.getrandbits(64)
                # Neither a sample of the run, nor the end of its share.
                records.append((record | HIGH) & ~(1 << 50) if record >> 48 & 3 == 3 else record)
        return records[:8 * self._longest]


@dataclass
class StormyPort:
    """The host port of a node, which also receives hostile messages as fast as PCIe carries them.

    Members
    -------
    make: function that returns the next message.
    left: messages to come.
    sent: messages sent, by kind.
    paused: messages held back for lack of credit.
    honest: messages of the run.
    refused: records of rejections by status, of hostile samples or of no sample.
    answered: hostile samples that were answered.
    wrong: packets that the NIC must not send.
    """

    node: Node
    port: HostPort
    messages: Messages
    kind: str
    left: int
    sent: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    paused: int = 0
    honest: int = 0
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    free: float = 0.0
    kept: Changed | None = None

    def give(self, packets: Sequence[np.ndarray], starts: Sequence[float], now: int) -> None:
        """Deliver messages of the run."""
        self.honest += len(packets)
        self.port.give(packets, starts, now)

    def take(self) -> Packets:
        """Return packets of the NIC; answers to hostile samples become packets of credit."""
        packets = self.port.take()
        if packets.starts:
            heads = parse_headers(packets.beats[packets.starts])
            for head, start, end in zip(heads, packets.starts, packets.ends):
                if self._foreign(packets.beats[start:end], head):
                    words = packets.beats[start:end].view(np.uint8).reshape(-1)
                    words[_OPCODE] = Opcode.CREDIT
        self.push()
        return packets

    def _foreign(self, packet: np.ndarray, head) -> bool:
        if head.opcode == Opcode.POOLED:
            foreign = HIGH <= int(packet[1, 0]) < NO_SAMPLE
            self.answered += foreign and bool(packet[1, 1] >> 16 & 1)
            return foreign
        if head.opcode != Opcode.ERRORS:
            return False
        for low, high in packet[1:].reshape(-1, 2)[:head.count].tolist():
            self.refused[high >> 16 & 0xFF] += 1
            if low < HIGH:
                self.wrong.append(f"sample {low} was refused with {high >> 16 & 0xFF}")
        return True

    def push(self) -> None:
        """Send messages that fill PCIe until the host's next turn."""
        engine, latency = self.node.engine, self.node.pcie.latency
        self.free = max(self.free, float(engine.cycle))
        while self.left and self.free < engine.cycle + latency:
            made = self.kept or getattr(self.messages, self.kind)()
            beats, opcode = len(made.data) // _BEAT, made.data[_OPCODE]
            if made.kind == Opcode.QUERIES.name and self.kind == "foreign":
                queries = self.node._queries
                self.kept = made
                if queries._sent_beats + beats - 1 - queries._consumed_beats > (
                        queries._buffer_beats):
                    self.paused += 1
                    self.free = engine.cycle + latency
                    return
                queries._sent_beats += beats - 1
            self.kept = None
            if self.node.training is not None and opcode in _PAID and (
                    beats - 1 <= self.messages._longest):
                # The rejected part of these messages is returned as credit.
                self.node.training._sent_beats += beats - 1
            cycles = np.ceil(self.free + np.arange(1, beats + 1)).astype(np.uint64)
            engine.push("host_rx", beats_of([made]), cycles)
            self.free += beats
            self.left -= 1
            self.sent[made.kind] += 1
