"""Query records for tests, and their interpretation in Python."""

import random
from dataclasses import dataclass, field
from typing import Any

from rtl.formats import RecordKind, Status
from tests.rtl.bags.words import bad_row, segments_of
from tests.rtl.descriptors import Table, split

KEY, KEY_END, EMPTY, SAMPLE = RecordKind
NO_SAMPLE = 0xFFFFFFFF


def key(table: int, row: int, end: bool = True) -> int:
    return row | table << 36 | (KEY_END if end else KEY) << 48


def empty(reserved: int = 0) -> int:
    return EMPTY << 48 | reserved << 50


def head(sample: int, slots: int, ends: bool = False) -> int:
    return sample | slots << 32 | SAMPLE << 48 | ends << 50


def beats(records: list[int], step: int, rng: random.Random | None = None) -> list[dict]:
    """Pack the records of one packet, eight per beat, with random bits in unused places."""
    packed = []
    for at in range(0, len(records), 8):
        part = records[at:at + 8]
        noise = rng.getrandbits(512) if rng else 0
        value = sum(r << 64 * k for k, r in enumerate(part))
        value |= noise >> 64 * len(part) << 64 * len(part)
        packed.append({"data": value, "records": len(part), "source": 0, "step": step,
                       "last": int(at + 8 >= len(records))})
    return packed


@dataclass
class Reading:
    """Reference of a checker's output for a stream of (record, step, lost beats before it).

    most: words of the longest bag that pools at its owner; None if the NIC has no such bags.
    beats: most beats of the vector of a bag.
    """

    tables: dict[int, Table]
    node: int
    nodes: int
    sample_slots: int
    open_step: int | None = None
    most: int | None = None
    bag_segments: int = 1024
    slots: list[dict] = field(default_factory=list)
    errors: list[dict] = field(default_factory=list)
    segments: list[dict] = field(default_factory=list)
    strays: int = 0
    beats: int = 16

    def __post_init__(self):
        self._sample: Any = None  # [number, step, slots expected, slots seen, status]
        self._straying = self._ends = False
        self._bags: list[dict] = []  # segments of the open sample

    def read(self, record: int, step: int, lost: bool = False) -> None:
        kind = record >> 48 & 3
        if lost:
            self.lose(step)
        if kind == SAMPLE:
            if self._sample is not None:
                self._close(Status.TRUNCATED, step)
            number, size = record & 0xFFFFFFFF, record >> 32 & 0xFFFF
            self._straying, self._bags = False, []
            self._sample, self._ends = [number, step, size, [], 0], bool(record >> 50 & 1)
            if not 1 <= size <= self.sample_slots or (self._ends and size != 1):
                self._fault(Status.SAMPLE_SIZE)
            elif self.open_step is not None and 2 <= step - self.open_step & 0xFFFF < 0x8000:
                self._fault(Status.STEP)
            if size == 0:
                self._sample = None
        elif self._sample is None:
            self._stray(step)
        else:
            self._slot(record, kind)

    def read_packet(self, words: list[int], step: int, lost: bool = False,
                    whole: bool = True) -> None:
        """Read the words of a packet, of which the end does not arrive unless ``whole``."""
        assert self.most is not None
        for item in segments_of(words, None, self.most, whole=whole):
            if item["plain"]:
                self.read(item["record"], step, lost)
            else:
                self._segment(item, step, lost)
            lost = False

    def _stray(self, step: int, slots: int = 1) -> None:
        self.strays += slots
        if not self._straying:
            self._error(NO_SAMPLE, step, Status.NO_SAMPLE)
        self._straying = True

    def _segment(self, item: dict, step: int, lost: bool) -> None:
        """Read a segment of a bag that pools at its owner."""
        if lost:
            self.lose(step)
        segment, head = item["segment"], item["record"]
        if self._sample is None:
            self._stray(step, segment["tail"])
            return
        seen, keys, wide = self._sample[3], head & 0xFFFF, head >> 16 & 1
        part, table = head >> 18 & 0x1FF, head >> 36 & 0xFFF
        owner, status = split(self.tables, table, 0, self.node, self.nodes, bag=1,
                              beats=self.beats)
        if status:
            self._fault(status)
        elif seen and seen[-1]["kind"] == KEY:
            self._fault(Status.KIND)
        elif not keys or part or item["long"] or len(self._bags) == self.bag_segments:
            self._fault(Status.SAMPLE_SIZE)
        elif bad_row(segment, self.tables[table].rows, wide):
            self._fault(Status.ROW)
        elif item["cut"]:
            self._fault(Status.TRUNCATED)
        if not self._sample[4]:
            self._bags.append(segment)
        if segment["tail"]:
            self._see({"row": keys, "table": table}, KEY_END, owner, bag=1)

    def lose(self, step: int) -> None:
        """Read a gap where beats were lost."""
        self._close(Status.CREDIT, step)
        self._straying = True

    def _slot(self, record: int, kind: int) -> None:
        size, seen = self._sample[2:4]
        row, table = record & ((1 << 36) - 1), record >> 36 & 0xFFF
        owner = None
        if kind == EMPTY:
            if seen and seen[-1]["kind"] == KEY:
                self._fault(Status.SAMPLE_SIZE)
        else:
            owner, status = split(self.tables, table, row, self.node, self.nodes,
                                  bag=None if self.most is None else 0)
            if status:
                self._fault(status)
            elif kind == KEY and len(seen) == size - 1:
                self._fault(Status.SAMPLE_SIZE)
        self._see({"row": row, "table": table}, kind, owner)

    def _see(self, key: dict, kind: int, owner: int | None, bag: int = 0) -> None:
        """Add a slot to the open sample."""
        number, step, size, seen, status = self._sample
        seen.append({"key": key, "kind": kind, "owner": owner,
                     "mine": int(owner == self.node), "sample": number, "step": step,
                     "ends": int(self._ends and kind == EMPTY),
                     "last": int(len(seen) == size - 1),
                     **({} if self.most is None else {"bag": bag, **self._of_table(key)})})
        if len(seen) == size:
            if not status:
                self.slots += seen
                self.segments += self._bags
            self._sample = None

    def _of_table(self, key: dict) -> dict[str, int]:
        table = self.tables.get(key["table"], Table())
        return {"mean": table.mean, "final_beat": table.final_beat}

    def _fault(self, status: int) -> None:
        if not self._sample[4]:
            self._sample[4] = status
            self._error(self._sample[0], self._sample[1], status)

    def _close(self, status: int, step: int) -> None:
        if self._sample is not None and not self._sample[4]:
            self._fault(status)
        elif status == Status.CREDIT:
            self._error(NO_SAMPLE, step, status)
        self._sample = None

    def _error(self, sample: int, step: int, status: int) -> None:
        self.errors.append({"sample": sample, "step": step, "status": status, "node": 0})
