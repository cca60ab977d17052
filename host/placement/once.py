"""Which lookups travel where each different key of a share is asked for once."""

import numpy as np

__all__ = ["sent_once"]


def sent_once(keys: np.ndarray, room: int) -> np.ndarray:
    """Return which of ``keys``, in the order in which they are looked up, are asked for: the first
    of each key, and all others of keys for which the table of repeats has no room.

    ``room``: keys that the table holds; those that come first take it. bool ``[n]``.
    """
    keys = np.asarray(keys)
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return (np.arange(len(keys)) == first[number]) | (place[number] >= room)
