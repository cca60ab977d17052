"""What goes into and comes out of gradient reduction, and how its key table keeps a set."""

from amaranth.hdl import ShapeLike
from amaranth.lib import data
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, LANES
from rtl.formats import STEP_BITS, GradientBeat, Key

__all__ = ["Flushed", "beat_bits", "gradient_beat_layout", "key_line_layout",
           "key_operation_layout", "passed_beat_layout", "reduced_beat_layout",
           "sum_meta_layout"]

Flushed = data.StructLayout({"step": STEP_BITS, "keys": 32, "passed": 32})
"""A pass of a step is over: the sums of ``keys`` keys have left, and ``passed`` beats of others
were passed on."""


def beat_bits(beats: int) -> int:
    """Return the bits of the number of a beat in a vector of ``beats``; none for a single one."""
    return ceil_log2(beats)


def gradient_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """:data:`rtl.formats.GradientBeat`, or the same with less ``lanes``."""
    if 32 * lanes == BEAT_BITS:
        return GradientBeat
    return data.StructLayout({**GradientBeat.members, "data": 32 * lanes})


def reduced_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """Layout of a beat that reduction gives out: that of a gradient, and ``last``.

    ``last``: where sums leave rounded, no other beat of this key follows in this pass. Always 0
    where they leave as lists, whose beats take turns.
    """
    return data.StructLayout({**gradient_beat_layout(lanes).members, "last": 1})


def sum_meta_layout(beats: int) -> data.StructLayout:
    """Layout of what goes with the sum of a beat of a key; ``last``: it is the key's final one."""
    return data.StructLayout({"key": Key.size, "beat": beat_bits(beats), "last": 1})


def passed_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """Layout of what a key table passes on: a gradient without its step."""
    return data.StructLayout({
        name: shape for name, shape in gradient_beat_layout(lanes).members.items()
        if name != "step"})


def key_line_layout(ways: int, beats: int) -> data.StructLayout:
    """Layout of a set of keys; all zero is an empty one. ``present``: which beats of the key's sum
    hold something; none does in a way that is free, and the ways are filled in ascending order."""
    return data.StructLayout({"ways": data.ArrayLayout(
        data.StructLayout({"key": Key.size, "present": beats}), ways)})


def key_operation_layout(keys: int, beats: int, payload: ShapeLike) -> data.StructLayout:
    """Layout of what is to be done with beat ``beat`` of an entry."""
    return data.StructLayout({
        "slot": ceil_log2(keys), "beat": beat_bits(beats), "payload": payload})
