"""Packets of gradients for tests, and a plain-Python model of their reception."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rtl.config import LANES, beats_of, packing_of
from rtl.formats import RecordKind, Status
from tests.rtl.descriptors import Table, split

KEY, KEY_END, EMPTY, SAMPLE = RecordKind
SPECIAL = [0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
           0x7F800001, 0x3F800000, 0x80000001]
"""Zeros, subnormals, the largest, infinities, NaNs."""


def values(dimension: int, rng: random.Random) -> list[int]:
    """Return a vector: binary32 of any kind."""
    return [rng.choice(SPECIAL) if rng.random() < 0.2 else rng.getrandbits(32)
            for _ in range(dimension)]


@dataclass
class Packet:
    """Records as (table, row, kind), a vector for each bag, and beats left out or added."""

    records: list[tuple[int, int, int]]
    vectors: list[list[int]]
    step: int = 0
    extra_beats: int = 0

    def beats(self, dimension: int, rng: random.Random) -> list[dict]:
        """Return the beats behind the header; unused bits are noise."""
        words = [row | table << 36 | kind << 48 | rng.getrandbits(14) << 50
                 for table, row, kind in self.records]
        packed = [(sum(w << 64 * k for k, w in enumerate(part))
                   | rng.getrandbits(512) >> 64 * len(part) << 64 * len(part), len(part))
                  for part in (words[at:at + 8] for at in range(0, len(words), 8))]
        lanes = [value for vector in self.vectors for value in vector]
        lanes += [rng.getrandbits(32) for _ in range(-len(lanes) % LANES)]
        raw = [(sum(v << 32 * k for k, v in enumerate(lanes[at:at + LANES])), 0)
               for at in range(0, len(lanes), LANES)]
        raw += [(rng.getrandbits(512), 0) for _ in range(self.extra_beats)]
        raw = raw[:len(raw) + min(0, self.extra_beats)]
        beats = packed + raw
        return [{"data": data, "records": records, "source": rng.getrandbits(8),
                 "step": self.step, "last": int(n == len(beats) - 1)}
                for n, (data, records) in enumerate(beats)]


def packet(lengths: list[int], dimension: int, key: Callable, rng: random.Random,
           step: int = 0) -> Packet:
    """Return a valid packet of bags of these lengths, with keys (table, row) from ``key()``."""
    records = [(*key(), KEY_END if n == length - 1 else KEY)
               for length in lengths for n in range(length)]
    return Packet(records, [values(dimension, rng) for _ in lengths], step)


def mean(vector: list[int], keys: int) -> list[int]:
    """Return each value divided by float32(keys), NaN as 0x7FC00000."""
    with np.errstate(all="ignore"):
        quotients = np.array(vector, "<u4").view("<f4") / np.float32(keys)
    bits = quotients.view("<u4").tolist()
    return [0x7FC00000 if nan else b for b, nan in zip(bits, np.isnan(quotients).tolist())]


@dataclass
class Reading:
    """Expected results of packets: beats, and the number of a step that ends."""

    tables: dict[int, Table]
    node: int
    nodes: int
    step: int
    dimension: int
    mean: bool
    ended: bool = False
    out: list[dict] = field(default_factory=list)
    refused: list[dict] = field(default_factory=list)
    packets: int = 0
    bags: int = 0

    def read(self, given: Packet) -> None:
        status = self.judge(given)
        if status:
            self.refused.append({"status": status, "step": given.step})
            return
        self.packets += 1
        if given.records[0][2] == EMPTY:
            self.ended = True
            self.out.append(given.step)
            return
        bag, vectors = [], iter(given.vectors)
        for table, row, kind in given.records:
            bag.append({"table": table, "row": row})
            if kind == KEY_END:
                self._expand(bag, next(vectors), given.step)
                bag = []

    def judge(self, given: Packet) -> int:
        """Return the status of an invalid packet, 0 for a valid one."""
        if not given.records:
            return Status.LENGTH
        if given.step != self.step or self.ended:
            return Status.STEP
        if [kind for _, _, kind in given.records] == [EMPTY]:
            return Status.LENGTH if given.vectors or given.extra_beats else 0
        for table, row, kind in given.records:
            if kind in (EMPTY, SAMPLE):
                return Status.KIND
            _, status = split(self.tables, table, row, self.node, self.nodes, False)
            if status:
                return status
        if given.records[-1][2] != KEY_END:
            return Status.TRUNCATED
        bags = sum(kind == KEY_END for _, _, kind in given.records)
        beats = -(-len(given.vectors) * self.dimension // LANES) + given.extra_beats
        if beats != -(-bags // (1 << packing_of(self.dimension))) * beats_of(self.dimension):
            return Status.LENGTH
        return 0

    def _expand(self, bag: list, vector: list[int], step: int) -> None:
        if self.mean:
            vector = mean(vector, len(bag))
        vector = vector + [0] * (-len(vector) % LANES)
        count = beats_of(self.dimension)
        beats = [sum(v << 32 * k for k, v in enumerate(vector[LANES * n:LANES * n + LANES]))
                 for n in range(count)]
        self.bags += 1
        self.out += [{"key": key, "beat": n, "step": step, "data": data}
                     for key in bag for n, data in enumerate(beats)]
