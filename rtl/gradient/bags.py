"""What the blocks between the host's gradients and the local reduction hand to each other."""

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import NODE_BITS, RECORD_BITS, RECORDS_PER_BEAT, STEP_BITS, Key

__all__ = ["BagKey", "GradientItem", "KeyGradient", "bag_length", "packet_records"]

KeyGradient = data.StructLayout({
    "key": Key, "owner": NODE_BITS, "step": STEP_BITS, "data": BEAT_BITS, "first": 1, "last": 1})
"""A beat of the gradient of one key in one bag; ``first`` and ``last`` of the vector. ``owner`` is
the node that holds the row."""

BagKey = data.StructLayout({"key": Key, "owner": NODE_BITS, "step": STEP_BITS, "end": 1})
"""A checked key of a bag; ``end`` on the last of its bag."""

GradientItem = data.StructLayout({
    "record": RECORD_BITS, "step": STEP_BITS, "bare": 1, "lost": 1, "last": 1, "beats": 8})
"""A record of a packet with ``beats`` beats of vectors; ``last`` of its packet. A packet that has
no record is one ``bare`` item, and ``lost`` if that is because it was sent without a credit."""


def packet_records(config: NicConfig) -> int:
    """Return the most records of a packet from the host."""
    return RECORDS_PER_BEAT * config.host_payload_beats


def bag_length(config: NicConfig) -> Shape:
    """Return the shape of a number of keys of a bag, which lies whole in a packet."""
    return unsigned(packet_records(config).bit_length())
