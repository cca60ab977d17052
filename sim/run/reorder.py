"""Values that come in any order, handed on in the order of their numbers."""

import numpy as np

__all__ = ["InOrder"]


class InOrder:
    """Holds values until all with lower numbers were handed on.

    Parameters: ``first``, the lowest number.

    Members: ``next``, the lowest number that was not handed on; ``held``, the values that wait,
    float32, in the order of their numbers.
    """

    def __init__(self, first: int = 0):
        self.next = first
        self._numbers = np.zeros(0, np.int64)
        self.held = np.zeros(0, "<f4")

    def add(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Take ``values [n]`` with their ``numbers [n]``; return those that are now in turn."""
        numbers = np.concatenate([self._numbers, numbers])
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        values = np.concatenate([self.held, values.astype("<f4", copy=False)])[order]
        ready = int((numbers == np.arange(self.next, self.next + len(numbers))).sum())
        self._numbers, self.held = numbers[ready:], values[ready:]
        self.next += ready
        return values[:ready]
