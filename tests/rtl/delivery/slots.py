"""Slots of steps, and a reference of their delivery, in Python."""

import random
from collections.abc import Iterable, Sequence

from host.placement.sets import CacheSets, set_of
from rtl.formats import END_SAMPLE, ROW_BITS, RecordKind
from rtl.keys.hash_columns import key_hash

__all__ = ["EMPTY", "Table", "end_of", "key_of", "slots_of", "some_keys", "with_bags",
           "with_repeats"]

EMPTY = None
"""In place of a key: an empty bag."""


def key_of(number: int) -> dict:
    """Return a key that shares its row with others, in tables 0 to 30."""
    return {"row": number // 31 * 0x9_1357_9BDF % (1 << ROW_BITS), "table": number % 31}


def slots_of(steps: Iterable[tuple[int, Sequence[int | None]]], *, seed: int = 0,
             longest: int = 5) -> list[dict]:
    """Return the slots of ``steps``, each a number and its keys, in samples of up to ``longest``
    slots."""
    rng, slots, sample = random.Random(seed), [], 0xFFFF_FFF0
    for step, keys in steps:
        left = 0
        for place, key in enumerate(keys):
            left = left or rng.randint(1, longest)
            left -= 1
            last = left == 0 or place == len(keys) - 1
            kind = RecordKind.EMPTY if key is EMPTY else rng.choice(
                (RecordKind.KEY, RecordKind.KEY_END))
            slots.append({
                "key": key_of(key or 0) if key is not EMPTY else {"row": 0, "table": 0},
                "kind": int(RecordKind.KEY_END if last and kind == RecordKind.KEY else kind),
                "owner": rng.randrange(8), "mine": rng.getrandbits(1) * (kind != RecordKind.EMPTY),
                "sample": sample, "step": step, "ends": 0,
                "last": int(last)})
            if last:
                sample = (sample + rng.choice((1, 1, 1, 2))) & 0xFFFF_FFFF
    return slots


def with_bags(slots: list[dict], seed: int) -> list[dict]:
    """Return ``slots`` with the bag and mean bits of a NIC with bags: about half of the KEY_END
    slots are bags. Many bags have equal keys."""
    rng = random.Random(seed)
    return [slot | {"bag": int(slot["kind"] == RecordKind.KEY_END and rng.random() < 0.5),
                    "mean": rng.getrandbits(1), "final_beat": rng.getrandbits(4)} for slot in slots]


def with_repeats(slots: list[dict], positions: int, seed: int) -> list[dict]:
    """Return the slots of a step with repeats: about half of the bags at the position of a kept bag
    of the previous sample."""
    rng, found = random.Random(seed), []
    before: set[int] = set()
    now: set[int] = set()
    position = 0
    for slot in slots:
        repeat = int(slot["bag"] and position in before and rng.random() < 0.5)
        kept = int(slot["bag"] and position < positions and rng.random() < 0.9)
        found.append(slot | {"repeat": repeat, "kept": kept and not repeat,
                             "position": position % positions} | (
            {"kind": int(RecordKind.EMPTY), "bag": 0, "mine": 0} if repeat else {}))
        if kept:
            now.add(position)
        position += slot["kind"] != RecordKind.KEY
        if slot["last"]:
            before, now, position = now, set(), 0
    return found


def end_of(step: int) -> dict:
    """Return the slot that ends the share of ``step``."""
    return {"key": {"row": 0, "table": 0}, "kind": int(RecordKind.EMPTY), "owner": 0,
            "mine": 0, "sample": END_SAMPLE, "step": step, "ends": 1, "last": 1}


def some_keys(count: int, of: int, seed: int, empty: float = 0.05) -> list[int | None]:
    """Return ``count`` keys out of ``of``, or empty bags; a few keys are frequent, some are in
    runs."""
    rng, keys = random.Random(seed), []
    while len(keys) < count:
        key = EMPTY if rng.random() < empty else min(of - 1, int(of * rng.random() ** 3))
        keys += [key] * rng.choice((1, 1, 1, 2, 3))
    return keys[:count]


class Table:
    """Reference of the finder: sets of 8 ways in LRU order, emptied at each step.

    Members: ``sent``, the slots that go on; ``first``, their numbers; ``indices``, of all slots.
    """

    def __init__(self, keys: int, limit: int = 0xFFFE):
        self._keys, self._limit, self._step = keys, limit, None
        self._kept: dict[int, int] = {}
        self.unique = self.repeats = self.retired = self.none = self.steps = 0
        self.sent: list[dict] = []
        self.first: list[int] = []
        self.indices: list[dict] = []

    def add(self, slot: dict) -> None:
        """Take a slot."""
        if slot["step"] != self._step:
            self._step, self._sets = slot["step"], CacheSets(self._keys // 8, 8)
            self._index: dict[tuple, int] = {}
            self._next, self.steps = 0, self.steps + 1
        empty = slot["kind"] == RecordKind.EMPTY
        if slot["ends"]:
            self.first.append(len(self.indices))
            self.sent.append(slot)
            self._step = None
        index, key = 0xFFFF, tuple(slot["key"].values())
        if slot.get("bag"):
            self.unique += 1
            index = min(self._next, self._limit)
            self._next += 1
            self.first.append(len(self.indices))
            self.sent.append(slot)
            self.none += index == self._limit
            if slot.get("kept"):
                self._kept[slot["position"]] = index
        elif slot.get("repeat"):
            index, empty = self._kept[slot["position"]], False
            self.none += index == self._limit
        elif not empty:
            which = set_of(key_hash(**slot["key"]), self._keys // 8)
            if self._sets.access(which, key):
                self.repeats += 1
            else:
                self.unique += 1
                self.retired += self._sets.evicted is not None
                self._index[key] = min(self._next, self._limit)
                self._next += 1
                self.first.append(len(self.indices))
                self.sent.append(slot)
            index = self._index[key]
            self.none += index == self._limit
        self.indices.append({
            "index": index, "sample": slot["sample"], "step": slot["step"], "last": slot["last"],
            "bag_end": int(slot["kind"] != RecordKind.KEY), "empty": int(empty),
            "ends": slot["ends"]})
