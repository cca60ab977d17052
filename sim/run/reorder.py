"""Reorder buffer: takes numbered values in any order and releases them in ascending order."""

import numpy as np

__all__ = ["ReorderBuffer"]


class ReorderBuffer:
    """Holds values until all values with lower numbers have been released.

    Parameters: ``first``, the lowest number.

    Members: ``next``, the lowest number not released yet; ``held``, the values held back, float32,
    in the order of their numbers.
    """

    def __init__(self, first: int = 0):
        self.next = first
        self._numbers = np.zeros(0, np.int64)
        self.held = np.zeros(0, "<f4")

    def add(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Add ``values [n]`` with their ``numbers [n]``; return the values released by this."""
        numbers = np.concatenate([self._numbers, numbers])
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        values = np.concatenate([self.held, values.astype("<f4", copy=False)])[order]
        ready = int((numbers == np.arange(self.next, self.next + len(numbers))).sum())
        self._numbers, self.held = numbers[ready:], values[ready:]
        self.next += ready
        return values[:ready]
