"""Numbering of keys in arrival order: an open-addressing hash table of numpy arrays."""

import numpy as np

from host.hashing import mix64

__all__ = ["KeyIndex"]

_FEWEST = 1 << 10
_BLOCK = 1 << 16


class KeyIndex:
    """Numbers int64 keys from 0; at most half of the hash table's slots are used.

    Memory: 8 to 16 bytes per key, and 8 to 16 for its slots.

    Raises ``OverflowError`` beyond 2^31 keys.
    """

    def __init__(self) -> None:
        self._keys = np.empty(_FEWEST // 2, np.int64)
        self._places = np.full(_FEWEST, -1, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> np.ndarray:
        """A copy of the keys in the order of their numbers."""
        return self._keys[:self._count].copy()

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the number of each of ``keys [n]``, -1 for an unknown key: int64."""
        found = np.full(len(keys), -1, np.int64)
        left = np.arange(len(keys))
        place = self._first_place(keys)
        while len(left):
            number = self._places[place]
            taken = number >= 0
            same = taken & (self._keys[number] == keys[left])
            found[left[same]] = number[same]
            on = taken & ~same
            left, place = left[on], self._next_place(place[on])
        return found

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Number the distinct ``keys``; return their numbers, old and new."""
        found = self.find(keys)
        new = found < 0
        first, self._count = self._count, self._count + int(new.sum())
        found[new] = np.arange(first, self._count)
        if self._count > len(self._keys):
            size = 1 << (self._count - 1).bit_length()
            if size > 1 << 31:
                raise OverflowError(f"an index has at most 2^31 keys, not {self._count}")
            self._keys.resize(size, refcheck=False)
            del self._places  # frees the old array before the new one is filled
            self._places = np.full(2 * size, -1, np.int32)
            first = 0
        self._keys[found[new]] = keys[new]
        for start in range(first, self._count, _BLOCK):
            self._take_places(np.arange(start, min(start + _BLOCK, self._count)))
        return found

    def _take_places(self, numbers: np.ndarray) -> None:
        place = self._first_place(self._keys[numbers])
        while len(numbers):
            free = self._places[place] < 0
            self._places[place[free]] = numbers[free]
            # If several keys choose a slot, a single key gets it; the other keys probe further.
            on = self._places[place] != numbers
            numbers, place = numbers[on], self._next_place(place[on])

    def _first_place(self, keys: np.ndarray) -> np.ndarray:
        return (mix64(keys.view(np.uint64)) & np.uint64(len(self._places) - 1)).astype(np.int64)

    def _next_place(self, place: np.ndarray) -> np.ndarray:
        return place + 1 & len(self._places) - 1
