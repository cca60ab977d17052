"""Layouts of gradient reduction: inputs, outputs, and the sets of its key table."""

from amaranth.hdl import ShapeLike
from amaranth.lib import data
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, LANES
from rtl.formats import STEP_BITS, GradientBeat, Key

__all__ = ["Flushed", "beat_bits", "gradient_beat_layout", "key_line_layout",
           "key_operation_layout", "passed_beat_layout", "reduced_beat_layout",
           "sum_meta_layout"]

Flushed = data.StructLayout({"step": STEP_BITS, "keys": 32, "passed": 32})
"""A pass of a step is over: the sums of ``keys`` keys have left, and ``passed`` beats of other keys
were passed on."""


def beat_bits(beats: int) -> int:
    """Return the bits of the number of a beat in a vector of ``beats``; 0 for a single beat."""
    return ceil_log2(beats)


def gradient_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """:data:`rtl.formats.GradientBeat`, or the same with fewer ``lanes``."""
    if 32 * lanes == BEAT_BITS:
        return GradientBeat
    return data.StructLayout({**GradientBeat.members, "data": 32 * lanes})


def reduced_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """Layout of an output beat of reduction: a gradient beat, and ``last``.

    last: no further beat of this key follows in this pass, if sums leave rounded. Always 0 if sums
    leave as lists, whose beats take turns.
    """
    return data.StructLayout({**gradient_beat_layout(lanes).members, "last": 1})


def sum_meta_layout(beats: int) -> data.StructLayout:
    """Layout of the data that accompany a sum of a key's beat; ``last``: the key's final beat."""
    return data.StructLayout({"key": Key.size, "beat": beat_bits(beats), "last": 1})


def passed_beat_layout(lanes: int = LANES) -> data.StructLayout:
    """Layout of a beat that a key table passes on: a gradient without its step."""
    return data.StructLayout({
        name: shape for name, shape in gradient_beat_layout(lanes).members.items()
        if name != "step"})


def key_line_layout(ways: int, beats: int) -> data.StructLayout:
    """Layout of a set of keys; all zero is an empty set. ``present``: the beats of the key's sum in
    use, 0 in a free way. Ways are filled in ascending order."""
    return data.StructLayout({"ways": data.ArrayLayout(
        data.StructLayout({"key": Key.size, "present": beats}), ways)})


def key_operation_layout(keys: int, beats: int, payload: ShapeLike) -> data.StructLayout:
    """Layout of an operation on beat ``beat`` of an entry."""
    return data.StructLayout({
        "slot": ceil_log2(keys), "beat": beat_bits(beats), "payload": payload})
