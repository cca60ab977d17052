"""Numbering of values in the order of their first occurrence, in bounded memory."""

import numpy as np

from host.hashing import mix64

__all__ = ["MOST_VALUES", "FirstSeen"]

MOST_VALUES = 1 << 26
"""Maximum distinct values of all tables: twice Criteo Kaggle's. A value takes 16 to 32 bytes, and
44 while its table grows: 3 GB at most.
"""

_LEAST_SLOTS = 1 << 10
_BLOCK = 1 << 16
"""Values that are moved to a larger table at once."""


class FirstSeen:
    """The distinct values of a table, numbered from 0 in the order of their first occurrence.

    A hash table of arrays with open addressing, at most half full, with 8 bytes per slot. The
    numbers do not depend on how the values are split into calls. ``len()`` is the number of
    distinct values so far.
    """

    def __init__(self):
        self._count = 0
        self._clear(_LEAST_SLOTS)

    def __len__(self) -> int:
        return self._count

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the number of each value, int64; ``values``: uint32, in their order."""
        slots = self._slots(values)
        new = self._numbers[slots] < 0
        if new.any():
            different, first = np.unique(values[new], return_index=True)
            self._add(different[np.argsort(first)])
            slots = self._slots(values)
        return self._numbers[slots].astype(np.int64)

    def _clear(self, slots: int) -> None:
        self._values, self._numbers = np.zeros(slots, np.uint32), np.full(slots, -1, np.int32)
        self._mask = slots - 1

    def _home(self, values: np.ndarray) -> np.ndarray:
        """Return the slot where the search for each value begins."""
        return (mix64(values.astype(np.uint64)) & np.uint64(self._mask)).astype(np.int64)

    def _slots(self, values: np.ndarray) -> np.ndarray:
        """Return the slot that contains each value, or the empty slot at the end of its search."""
        slots, left = self._home(values), np.arange(len(values))
        while len(left):
            at = slots[left]
            left = left[(self._numbers[at] >= 0) & (self._values[at] != values[left])]
            slots[left] = (slots[left] + 1) & self._mask
        return slots

    def _add(self, values: np.ndarray) -> None:
        """Give the next numbers to new, distinct values."""
        numbers = np.arange(self._count, self._count + len(values), dtype=np.int32)
        self._count += len(values)
        if 2 * self._count > len(self._values):
            held = self._numbers >= 0
            values = np.concatenate([self._values[held], values])
            numbers = np.concatenate([self._numbers[held], numbers])
            self._values = self._numbers = np.empty(0, np.uint32)  # frees their memory
            self._clear(1 << (2 * self._count - 1).bit_length())
        for first in range(0, len(values), _BLOCK):
            self._put(values[first:first + _BLOCK], numbers[first:first + _BLOCK])

    def _put(self, values: np.ndarray, numbers: np.ndarray) -> None:
        """Put new, distinct values into empty slots; at least half of the slots are empty."""
        slots, left = self._home(values), np.arange(len(values))
        while len(left):
            at = slots[left]
            free = self._numbers[at] < 0
            # If several values find the same empty slot, the last write wins.
            self._numbers[at[free]] = numbers[left[free]]
            own = self._numbers[at] == numbers[left]
            self._values[at[own]] = values[left[own]]
            left = left[~own]
            slots[left] = (slots[left] + 1) & self._mask
