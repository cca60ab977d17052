"""What goes into and comes out of gradient reduction, and how its key table keeps a set."""

from amaranth.hdl import ShapeLike
from amaranth.lib import data
from amaranth.utils import ceil_log2

from rtl.cache.lru import order_bits
from rtl.config import LANES
from rtl.float.exact import EXACT_TERMS
from rtl.formats import STEP_BITS, Key

__all__ = ["Flushed", "beat_bits", "gradient_beat_layout", "gradient_term_layout",
           "key_line_layout", "key_operation_layout"]

Flushed = data.StructLayout({"step": STEP_BITS, "keys": 32})
"""A step's sums have left: of how many entries, those that were retired early included."""


def beat_bits(beats: int) -> int:
    """Return the bits of the number of a beat in a vector of ``beats``; none for a single one."""
    return ceil_log2(beats)


def gradient_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """Layout of a beat of a key's gradient; ``last`` on the final beat of the vector."""
    return data.StructLayout({"key": Key, "step": STEP_BITS, "data": 32 * lanes, "last": 1})


def gradient_term_layout(beats: int, lanes: int = LANES) -> data.StructLayout:
    """Layout of one beat of the list that beat ``beat`` of a key's sum leaves as.

    ``count``: the terms of this list until here; with ``last``, its terms. ``partial``: the key's
    sum in this step may come as several lists, each exact, to be added before they are rounded.
    """
    return data.StructLayout({
        "key": Key, "step": STEP_BITS, "beat": beat_bits(beats), "data": 32 * lanes,
        "count": range(2 * EXACT_TERMS), "last": 1, "partial": 1})


def key_line_layout(ways: int) -> data.StructLayout:
    """Layout of a set of keys; all zero is an empty one.

    ``partial``: an entry of the set was retired early in this step.
    """
    return data.StructLayout({
        "ways": data.ArrayLayout(data.StructLayout({"key": Key.size, "valid": 1}), ways),
        "order": order_bits(ways), "partial": 1})


def key_operation_layout(keys: int, beats: int, payload: ShapeLike) -> data.StructLayout:
    """Layout of what is to be done with beat ``beat`` of the entry of a key.

    ``key`` and ``partial`` are those of the sum that leaves, if one does.
    """
    return data.StructLayout({
        "slot": ceil_log2(keys), "beat": beat_bits(beats), "key": Key.size, "partial": 1,
        "payload": payload})
